// Mistake: a lock is taken and released by atomics that order nothing, so that what it guards is
//   read too early and left too late.
// Cure: __threadfence() behind the lock's taking and before its release.
// Seen: https://github.com/kokkos/kokkos/issues/3038
// Launch: sm_80 grid 4 block 1 args int32[1] int32[1]
// Says: race
__global__ void lock_without_fence(int* lock, int* count)
{
    while (atomicCAS(lock, 0, 1) != 0) { }
#ifdef CURED
    __threadfence();
#endif
    *count += 1;
#ifdef CURED
    __threadfence();
#endif
    atomicExch(lock, 0);
}
