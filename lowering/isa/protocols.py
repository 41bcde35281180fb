"""What instructions do that a function of their operands cannot say: waiting, arriving, and what is done later.

A record names one of these, and the reference machine carries it out.  Source: PTX ISA, "Asynchronous operations",
"Async proxy", and the sections of the instructions.
"""

CTA_BARRIER = "cta_barrier"
"""All threads of the CTA meet; what each wrote to shared memory before is seen by all."""
NAMED_BARRIER = "named_barrier"
"""``id``, ``count``: that many threads meet on that barrier, and see what each wrote to shared memory before."""
WARP_BARRIER = "warp_barrier"
"""The threads of the warp meet, and see what each wrote to memory before."""

CP_ASYNC = "cp_async"
"""``dst`` (shared), ``src`` (global), ``n``: as many bytes as dst stands for are written there some time before the
thread's wait for the group: the first n from src, then zeros.  With n = 0 src is not touched."""
CP_ASYNC_COMMIT = "cp_async_commit"
"""What the thread has begun since its last commit is one more group."""
CP_ASYNC_WAIT = "cp_async_wait"
"""``pending``, a constant: the thread waits until no groups but its latest so many are under way."""

CP_ASYNC_ARRIVE = "cp_async_arrive"
"""``bar``: one arrival for each thread, when all copies that it has begun have landed; releases these copies alone."""

MBARRIER_INIT = "mbarrier_init"
"""``bar``, ``count``: the barrier's phase 0 is complete after that many arrivals and all bytes expected of it."""
MBARRIER_ARRIVE = "mbarrier_arrive"
"""``bar``: one arrival; releases what the thread did before.  Loads from shared memory that the thread has not used the
result of may still be under way: the machine refuses to release them."""
MBARRIER_EXPECT = "mbarrier_expect"
"""``bar``, ``bytes``: that many more bytes are expected in this phase, then one arrival."""
MBARRIER_WAIT = "mbarrier_wait"
"""``bar``, ``parity``: wait until the phase of that parity is complete; acquires what its arrivals released."""
MBARRIER_FENCE = "mbarrier_fence"
"""Makes the initialization of barriers known to the copy engine."""

BULK_LOAD = "bulk_load"
"""``dst``, ``map``, ``c0`` ..., ``bar``: a box of a tensor is written to shared memory, zeros beyond the tensor; the
barrier's phase counts the bytes when they have landed.  ``c0`` is a multiple of 16 bytes, here and in `BULK_STORE`:
others, negative ones too, are an illegal instruction."""
BULK_STORE = "bulk_store"
"""``map``, ``c0`` ..., ``src``: a box in shared memory is written to a tensor, but for what is beyond it.  The copy
engine sees what threads wrote only behind a `PROXY_FENCE`.

It writes whole units of 16 bytes: where rows of the tensor (dimension 0) are no multiple of them, memory behind each
is overwritten up to the next multiple with what the box has there.  Not in the manual; measured on an H200."""
BULK_COMMIT = "bulk_commit"
"""What the thread has begun to store since its last commit is one more group."""
BULK_WAIT_READ = "bulk_wait_read"
"""``pending``, a constant: the thread waits until all but its latest so many groups have been read."""
BULK_WAIT = "bulk_wait"
"""``pending``, a constant: the thread waits until all but its latest so many groups are written."""
PROXY_FENCE = "proxy_fence"
"""What the thread can see of shared memory, the copy engine sees from here on."""

COUNT = "count"
"""``counter`` (global): one more; releases what the warp's threads wrote to global memory before, to threads and the
copy engine of every CTA that waits for it; bulk stores once they were waited for.  The machine takes all warps of the
CTA for one."""
COUNT_WAIT = "count_wait"
"""``counter``, ``count``: wait until the counter, unsigned, is no less; acquires what so many counts released, and no
more: which were made first is open."""

HINT = "hint"
"""Changes no value: a prefetch, a change of the number of registers."""
