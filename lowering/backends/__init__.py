"""Backends: a program in, something that runs or can be read out.  None knows variants, and none knows another's tools.

``reference`` executes on any CPU, and ``cta_machine`` whole kernels; ``numba_cuda`` makes device functions and kernels;
``ptx``, ``cuda_text`` write text; ``assemble`` turns text into machine code, without a GPU; ``driver`` launches that.
"""
