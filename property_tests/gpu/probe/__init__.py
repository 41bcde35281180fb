"""Single instructions on a GPU: where their elements are, and what they compute, read back and compared with records.

    python -m property_tests.gpu.probe --commit HASH --json FILE

Rows are made of a record and a *device* that executes it: `Gpu`, or `Machine`, which executes the record's meaning and
lets the tests run all of this without a GPU.  Needs numpy, ml_dtypes and cuda.bindings; numba and pytest take no part.
"""
