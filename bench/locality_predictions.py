"""What was expected of each order and layout before it was measured: processor time as a share of the plain step."""

from __future__ import annotations

ORDERS = {
    "random": "synthetic 1.0 to 1.05 (it is shuffled already), real 1.3 (letters put some synonyms side by side)",
    "degree": "1.0, as found before at 23 million edges",
    "first passage": "synthetic 0.95 (mentions are a tenth of the edges), real 0.9",
    "Cuthill-McKee": "0.8, as found before at 23 million edges; real 0.85",
    "labels": "synthetic 0.5 (circles of synonyms are four fifths of the edges and fit the second cache), real 0.8",
    "Leiden": "as labels",
}
LAYOUTS = {
    "run by run": "1.0 to 1.05: the same bytes, a loop more",
    "float16 weights": "1.0: a quarter of the matrix is saved, which is 8 % of a step at B = 1 and 4 % at B = 32",
    "16-bit fixed weights": "1.0 to 1.05: the same bytes, a multiplication and a choice more",
    "no weights of mentions": "0.98 to 1.0: a twentieth of the synthetic matrix, a quarter of the real one",
    "16-bit gaps": "1.15 at B = 1 (each column waits for the one before), 1.02 at B = 32",
    "varint gaps": "1.5 at B = 1 (a branch a byte that is guessed wrong), 1.1 at B = 32",
    "16-bit gaps and weights": "1.15 at B = 1, 1.02 at B = 32: half the matrix, and both decodings",
}
BITS = {
    "as is": "16 bits with escape 20, varint 18: gaps of 28,000 on average at 100,000 passages",
    "labels": "16 bits with escape 16.5, varint 10: most gaps stay in a community",
}
ACCURACY = {
    "float16": "rounding to 3e-4 of a weight moves masses by up to 6e-4 in L1: some top-20 sets change",
    "16-bit fixed": "rounding to 1.9e-6 of a weight: none or one set in a thousand changes",
}
PREDICTIONS = {"orders": ORDERS, "layouts": LAYOUTS, "bits": BITS, "accuracy": ACCURACY}
