"""Planning a round: facts of both clusters in; ranges, tasks and problems out.

`facts` and what it calls ask the clusters and the ledger; `plan` and the rules that it calls are pure. It changes
nothing: `mirror_lib.copy` carries a plan out.
"""
