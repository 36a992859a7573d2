"""Planning a round: facts of both clusters in; ranges, tasks and problems out.

`facts` asks the clusters and the ledger; all else is pure. It changes nothing: `mirror_lib.copy` carries a plan out.
"""
