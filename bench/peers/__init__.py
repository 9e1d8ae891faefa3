"""Other programs that compute Personalised PageRank, each called as well as it can be: one small file each.

Each file has `prepare(graph, damping=…)`, what a program does once for a graph, and `run(prepared, seeds, …)`: rows of
seeds (B, n) that sum to 1 → rows of mass (B, n). With G the inverse of the plain linear system and m₀ the seed mass on
nodes without edges, which restarts at the seeds, that is x = G·s ÷ (1 − d·m₀).
"""
