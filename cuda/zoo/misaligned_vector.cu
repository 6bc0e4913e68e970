// Mistake: rows of odd length are read as float4, so that every row but the first is misaligned.
// Cure: scalar loads where a row doesn't begin at a multiple of 16 bytes.
// Seen: https://github.com/lightseekorg/tokenspeed/pull/683
// Seen: https://github.com/apache/mahout/pull/1108
// Launch: sm_80 grid 3 block 1 args float32[3,5]:arange float32[3]
// Says: Misaligned
__global__ void misaligned_vector(const float* x, float* y)
{
    const float* row = x + 5 * blockIdx.x;
#ifdef CURED
    y[blockIdx.x] = row[0] + row[1] + row[2] + row[3] + row[4];
#else
    const float4 v = *reinterpret_cast<const float4*>(row);
    y[blockIdx.x] = v.x + v.y + v.z + v.w + row[4];
#endif
}
