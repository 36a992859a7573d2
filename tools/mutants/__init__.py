"""`./run mutants`: how many small faults in the code that must never be wrong do the tests notice?"""
