// One row times a matrix as it lies in memory: y[n] = bias[n] + sum over k of w[n][k] x[k].
//
// To write a token, every weight is read once and used once: all that counts is how fast they stream in. Each thread
// reads its share of the matrix from its first number to its last, which is what a processor fetches ahead by itself;
// several rows at a time, or asking for what comes next, were slower. A sum has one order, however many threads there are.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace {

constexpr ptrdiff_t WIDTH = 16;  // numbers at a time: one register of AVX-512, two of AVX2, four of NEON
typedef float Lanes __attribute__((vector_size(WIDTH * sizeof(float))));

struct Half {
  uint16_t bits;
};

inline Lanes read(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

#if defined(__AVX512F__)
inline Lanes read(const Half* from) {
  return (Lanes)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
#elif defined(__F16C__)
inline Lanes read(const Half* from) {
  const __m128i* halves = reinterpret_cast<const __m128i*>(from);
  const __m256 both[2] = {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
  Lanes lanes;
  std::memcpy(&lanes, both, sizeof lanes);
  return lanes;
}
#endif

template <class Number>
float product(const Number* row, const float* x, ptrdiff_t columns) {
  Lanes even = {}, odd = {};  // two sums, so that none waits for the one before
  for (ptrdiff_t k = 0; k < columns; k += 2 * WIDTH) {
    even += read(row + k) * read(x + k);
    odd += read(row + k + WIDTH) * read(x + k + WIDTH);
  }
  even += odd;
  float sum = 0;
  for (ptrdiff_t lane = 0; lane < WIDTH; lane++) sum += even[lane];
  return sum;
}

template <class Number>
void all(const Number* matrix, const float* x, const float* bias, float* y, ptrdiff_t rows, ptrdiff_t columns,
         int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (ptrdiff_t n = 0; n < rows; n++) y[n] = product(matrix + n * columns, x, columns) + (bias ? bias[n] : 0);
}

}  // namespace

extern "C" void by_floats(const float* matrix, const float* x, const float* bias, float* y, int64_t rows,
                          int64_t columns, int threads) {
  all(matrix, x, bias, y, rows, columns, threads);
}

#if defined(__F16C__)
extern "C" void by_halves(const Half* matrix, const float* x, const float* bias, float* y, int64_t rows,
                          int64_t columns, int threads) {
  all(matrix, x, bias, y, rows, columns, threads);
}
#endif
