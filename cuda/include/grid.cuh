// A grid that may begin while the one before it in the stream still ends (sm_90).
//
// Where the launch allows it (cudaLaunchAttributeProgrammaticStreamSerialization), blocks start as
// soon as there is room, and do what needs no data: barriers, a cluster's first meeting. Elsewhere
// both calls do nothing. PTX ISA 9.7.13.13.
#pragma once

// Hold the thread until the grids before this one have ended and what they wrote can be seen.
__device__ inline void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// The next grid may begin when every block has said so or ended.
__device__ inline void grid_go() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
