// One row times a matrix as it lies in memory: y[n] = bias[n] + sum over k of w[n][k] x[k].
//
// To write a token, every weight is read once and used once: all that counts is how fast they stream in. Each thread
// goes through four parts of its share side by side, each from its first number to its last: a processor fetches such
// streams ahead by itself, and while one waits for its next page the others go on. Neighbouring rows side by side, or
// asking for what comes next, were slower. A sum has one order, however many threads there are.
//
// And a whole block's row: between two products there is so little to do that calling torch for it, operation by
// operation, took as long as a third of the products.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace {

constexpr ptrdiff_t WIDTH = 16;  // numbers at a time: one register of AVX-512, two of AVX2, four of NEON
constexpr int STREAMS = 4;       // of each thread
constexpr ptrdiff_t ALONE = 1 << 16;  // numbers; of fewer, others are not worth waking
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

inline float summed(const Lanes& lanes) {
  float sum = 0;
  for (ptrdiff_t lane = 0; lane < WIDTH; lane++) sum += lanes[lane];
  return sum;
}

template <int COUNT, class Number>
void products(const Number* rows, ptrdiff_t apart, const float* x, const float* bias, float* y, ptrdiff_t columns) {
  Lanes sums[COUNT] = {};
  for (ptrdiff_t k = 0; k < columns; k += WIDTH) {
    const Lanes lanes = read(x + k);
    for (int row = 0; row < COUNT; row++) sums[row] += read(rows + row * apart * columns + k) * lanes;
  }
  for (int row = 0; row < COUNT; row++) y[row * apart] = summed(sums[row]) + (bias ? bias[row * apart] : 0);
}

template <class Number>
void all(const Number* matrix, const float* x, const float* bias, float* y, ptrdiff_t rows, ptrdiff_t columns,
         int threads) {
  if (rows * columns < ALONE) threads = 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int part = 0; part < threads; part++) {
    const ptrdiff_t from = rows * part / threads, to = rows * (part + 1) / threads, apart = (to - from) / STREAMS;
    const auto at = [&](ptrdiff_t n) { return bias ? bias + n : bias; };
    for (ptrdiff_t n = from; n < from + apart; n++)
      products<STREAMS>(matrix + n * columns, apart, x, at(n), y + n, columns);
    for (ptrdiff_t n = from + STREAMS * apart; n < to; n++)
      products<1>(matrix + n * columns, 1, x, at(n), y + n, columns);
  }
}

inline void write(float* to, const Lanes& lanes) { std::memcpy(to, &lanes, sizeof lanes); }

inline Lanes every(float number) { return Lanes{} + number; }

// e^x: 2^n by the exponent's bits, and what is left, at most half of log 2, by a polynomial.
inline Lanes exp_of(Lanes x) {
  typedef int32_t Whole __attribute__((vector_size(sizeof(Lanes))));
  const Lanes least = every(-87.0f), most = every(88.0f);
  x = x < least ? least : x;
  x = x > most ? most : x;
  const Lanes shifted = x * 1.44269504f + 12582912.0f;  // 1.5 x 2^23: what is behind the point is rounded away
  const Lanes n = shifted - 12582912.0f;
  const Lanes r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  return y * (Lanes)((__builtin_convertvector(n, Whole) + 127) << 23);
}

struct Matrix {
  const void* numbers;
  const float* bias;
  int64_t rows, columns, halves;
};

struct Norm {
  const float *weight, *bias;
  int64_t centred;
  double eps;
};

struct Block {
  Norm norm1, norm2;
  Matrix qkv, join, up, down;
  int64_t heads, groups, width, gated, activation;  // of a head; 0: relu, 1: gelu by tanh, 2: silu
  double scale;
};

void times(const Matrix& matrix, const float* x, float* y, int threads) {
#if defined(__F16C__)
  if (matrix.halves)
    return all(static_cast<const Half*>(matrix.numbers), x, matrix.bias, y, matrix.rows, matrix.columns, threads);
#endif
  all(static_cast<const float*>(matrix.numbers), x, matrix.bias, y, matrix.rows, matrix.columns, threads);
}

void normed(const Norm& norm, const float* x, float* y, ptrdiff_t width) {
  Lanes sum = {}, squares = {};
  if (norm.centred)
    for (ptrdiff_t k = 0; k < width; k += WIDTH) sum += read(x + k);
  const float mean = summed(sum) / width;
  for (ptrdiff_t k = 0; k < width; k += WIDTH) squares += (read(x + k) - mean) * (read(x + k) - mean);
  const float by = 1 / std::sqrt(summed(squares) / width + static_cast<float>(norm.eps));
  for (ptrdiff_t k = 0; k < width; k += WIDTH) {
    Lanes lanes = (read(x + k) - mean) * by;
    if (norm.weight) lanes *= read(norm.weight + k);
    if (norm.bias) lanes += read(norm.bias + k);
    write(y + k, lanes);
  }
}

void turned(float* x, const float* cos, const float* sin, ptrdiff_t width) {
  const ptrdiff_t half = width / 2;
  for (ptrdiff_t k = 0; k < half; k++) {
    const float one = x[k], two = x[k + half];
    x[k] = one * cos[k] + two * sin[k];
    x[k + half] = two * cos[k + half] + one * sin[k + half];
  }
}

// What one head takes of `columns` values, by a softmax of how its query matches their keys.
void looked(const float* q, const float* keys, const float* values, float* y, float* scores, ptrdiff_t columns,
            ptrdiff_t width, float scale) {
  const ptrdiff_t even = (columns + WIDTH - 1) / WIDTH * WIDTH;
  float most = -INFINITY;
  for (ptrdiff_t j = 0; j < columns; j++) {
    Lanes sum = {};
    for (ptrdiff_t k = 0; k < width; k += WIDTH) sum += read(q + k) * read(keys + j * width + k);
    scores[j] = summed(sum) * scale;
    most = scores[j] > most ? scores[j] : most;
  }
  for (ptrdiff_t j = columns; j < even; j++) scores[j] = -INFINITY;
  float total = 0;
  for (ptrdiff_t j = 0; j < even; j += WIDTH) write(scores + j, exp_of(read(scores + j) - most));
  for (ptrdiff_t j = 0; j < columns; j++) total += scores[j];
  for (ptrdiff_t k = 0; k < width; k += WIDTH) {
    Lanes sum = {};
    for (ptrdiff_t j = 0; j < columns; j++) sum += read(values + j * width + k) * scores[j];
    write(y + k, sum / total);
  }
}

void bent(const Block& block, float* x) {
  for (ptrdiff_t k = 0; k < block.down.columns; k += WIDTH) {
    const Lanes lanes = read(x + k);
    Lanes y = lanes > 0 ? lanes : Lanes{};
    if (block.activation) {
      const Lanes inner = block.activation == 1 ? (lanes + lanes * lanes * lanes * 0.044715f) * 1.5957691216f : lanes;
      y = lanes / (1.0f + exp_of(-inner));  // (1 + tanh u) / 2 is 1 / (1 + e^-2u)
    }
    write(x + k, block.gated ? y * read(x + block.down.columns + k) : y);
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

// A block's row x, changed where it lies; its key and value are written behind the `before` columns of a memory, whose
// groups are `apart` numbers from each other. The turned queries are left in q.
extern "C" void by_block(const Block* given, float* x, float* q, float* keys, float* values, int64_t apart,
                         int64_t before, const float* cos, const float* sin, int threads) {
  const Block& block = *given;
  const ptrdiff_t model = block.join.rows, width = block.width, share = block.heads / block.groups;
  const ptrdiff_t columns = before + 1, room = (columns + WIDTH - 1) / WIDTH * WIDTH;
  thread_local std::vector<float> kept;
  kept.resize(model * 2 + block.join.columns + block.up.rows + block.heads * room);
  float *state = kept.data(), *made = state + model, *taken = made + model, *hidden = taken + block.join.columns;
  float* scores = hidden + block.up.rows;

  normed(block.norm1, x, state, model);
  times(block.qkv, state, q, threads);
  float *k = q + block.heads * width, *v = k + block.groups * width;
  if (cos)
    for (ptrdiff_t head = 0; head < block.heads + block.groups; head++) turned(q + head * width, cos, sin, width);
  for (ptrdiff_t group = 0; group < block.groups; group++) {
    std::memcpy(keys + group * apart + before * width, k + group * width, width * sizeof(float));
    std::memcpy(values + group * apart + before * width, v + group * width, width * sizeof(float));
  }
#pragma omp parallel for schedule(static) num_threads(threads) if (block.heads * columns * width >= ALONE)
  for (ptrdiff_t head = 0; head < block.heads; head++) {
    const ptrdiff_t group = head / share * apart;
    looked(q + head * width, keys + group, values + group, taken + head * width, scores + head * room, columns, width,
           static_cast<float>(block.scale));
  }
  times(block.join, taken, made, threads);
  for (ptrdiff_t n = 0; n < model; n++) x[n] += made[n];
  normed(block.norm2, x, state, model);
  times(block.up, state, hidden, threads);
  bent(block, hidden);
  times(block.down, hidden, made, threads);
  for (ptrdiff_t n = 0; n < model; n++) x[n] += made[n];
}
