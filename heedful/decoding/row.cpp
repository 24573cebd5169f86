// One row times a matrix as it lies in memory: y[n] = bias[n] + sum over k of w[n][k] x[k].
//
// To write a token, every weight is read once and used once: all that counts is how fast they stream in. Each thread
// goes through four parts of its share side by side, each from its first number to its last: a processor fetches such
// streams ahead by itself, and while one waits for its next page the others go on. Neighbouring rows side by side, or
// asking for what comes next, were slower. A sum has one order, however many threads there are.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace {

constexpr ptrdiff_t WIDTH = 16;  // numbers at a time: one register of AVX-512, two of AVX2, four of NEON
constexpr int STREAMS = 4;       // of each thread
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

template <int COUNT, class Number>
void products(const Number* rows, ptrdiff_t apart, const float* x, const float* bias, float* y, ptrdiff_t columns) {
  Lanes sums[COUNT] = {};
  for (ptrdiff_t k = 0; k < columns; k += WIDTH) {
    const Lanes lanes = read(x + k);
    for (int row = 0; row < COUNT; row++) sums[row] += read(rows + row * apart * columns + k) * lanes;
  }
  for (int row = 0; row < COUNT; row++) {
    float sum = 0;
    for (ptrdiff_t lane = 0; lane < WIDTH; lane++) sum += sums[row][lane];
    y[row * apart] = sum + (bias ? bias[row * apart] : 0);
  }
}

template <class Number>
void all(const Number* matrix, const float* x, const float* bias, float* y, ptrdiff_t rows, ptrdiff_t columns,
         int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int part = 0; part < threads; part++) {
    const ptrdiff_t from = rows * part / threads, to = rows * (part + 1) / threads, apart = (to - from) / STREAMS;
    const auto at = [&](ptrdiff_t n) { return bias ? bias + n : bias; };
    for (ptrdiff_t n = from; n < from + apart; n++)
      products<STREAMS>(matrix + n * columns, apart, x, at(n), y + n, columns);
    for (ptrdiff_t n = from + STREAMS * apart; n < to; n++)
      products<1>(matrix + n * columns, 1, x, at(n), y + n, columns);
  }
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
