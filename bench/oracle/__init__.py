"""Comparison with what the authors' library returned on MuSiQue's 1,890 passages."""
