"""A chain of SMTs over rows by columns, as Spark and the reading half provide them.

SMTs that read no key and no value work on whole columns (`columnar`); for the others, records are built from rows, one
after the other, with only the parts that the chain reads (`records`). Both give the same result; `stage` chooses.

The copy task must not load numpy and Arrow: nothing that it imports may import this package.
"""
