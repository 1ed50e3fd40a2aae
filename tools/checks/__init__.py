"""The checks behind `make check`, one module for each kind. tools/check.py runs them."""
