"""vmprof's command line: ``python -m plimsoll.vmprof program.py``; ``python -m plimsoll.vmprof.show`` is vmprofshow.

Its Python interface is :mod:`plimsoll.compat.vmprof`.
"""
