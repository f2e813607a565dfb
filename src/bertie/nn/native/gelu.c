/* GELU of a linear layer's output and its gradient: the exact form, by the error function, or the usual one by tanh. Also
   with a gate. */

#include "vectors.h"

#include <math.h>

/* Minimax x P(x^2) / Q(x^2), some units in the last place; beyond 4 it is 1 in float. */
static inline vec error_function(vec x) {
    x = choose(x > all(4.0f), all(4.0f), choose(x < all(-4.0f), all(-4.0f), x));
    vec square = x * x;
    vec above = all(-2.72614225801306e-10f);
    above = above * square + 2.77068142495902e-08f;
    above = above * square - 2.10102402082508e-06f;
    above = above * square - 5.69250639462346e-05f;
    above = above * square - 7.34990630326855e-04f;
    above = above * square - 2.95459980854025e-03f;
    above = above * square - 1.60960333262415e-02f;
    vec below = all(-1.45660718464996e-05f);
    below = below * square - 2.13374055278905e-04f;
    below = below * square - 1.68282697438203e-03f;
    below = below * square - 7.37332916720468e-03f;
    below = below * square - 1.42647390514189e-02f;
    return x * above / below;
}

static inline vec normal(vec x) { return (error_function(x * 0.70710678f) + 1.0f) * 0.5f; } /* P(X < x) */
static inline vec density(vec x) { return exponential(x * x * -0.5f) * 0.39894228f; }

/* (1 + tanh(z)) / 2 for z = sqrt(2 / pi) (x + 0.044715 x^3), which is near normal(x). */
static inline vec nearly_normal(vec x) {
    vec twice = x * (x * x * 0.0713548163f + 1.5957691216f); /* 2 z */
    vec power = exponential(choose(twice > all(0.0f), -twice, twice));
    return choose(twice > all(0.0f), all(1.0f), power) / (power + 1.0f);
}

/* gelu(x) / x */
static inline vec share(vec x, int exact) { return exact ? normal(x) : nearly_normal(x); }

static inline vec slope(vec x, vec part, int exact) {
    if (exact) return part + x * density(x);
    return part + x * part * (1.0f - part) * (x * x * 0.2140644488f + 1.5957691216f);
}

/* The last numbers of a row, as many as do not fill a vector, go through one all the same. */
static inline vec load_some(const float *from, int64_t count) {
    vec value = all(0.0f);
    for (int64_t lane = 0; lane < count; lane++) value[lane] = from[lane];
    return value;
}
static inline void store_some(float *to, vec value, int64_t count) {
    for (int64_t lane = 0; lane < count; lane++) to[lane] = value[lane];
}

/* x += bias, out = gelu(x), for rows of one width; `out` may be x itself, where x is not wanted afterwards. */
void add_bias_gelu(float *x, const float *bias, float *out, int64_t num_rows, int64_t width, int exact,
                   int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t row = 0; row < num_rows; row++) {
        float *line = x + row * width, *to = out + row * width;
        int64_t column = 0;
        for (; column + LANES <= width; column += LANES) {
            vec sum = load(line + column) + load(bias + column);
            store(line + column, sum);
            store(to + column, sum * share(sum, exact));
        }
        vec sum = load_some(line + column, width - column) + load_some(bias + column, width - column);
        store_some(line + column, sum, width - column);
        store_some(to + column, sum * share(sum, exact), width - column);
    }
}

/* gradient *= gelu'(x) */
void gelu_backward(const float *x, float *gradient, int64_t size, int exact, int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t begin = 0; begin < size; begin += 4096) {
        int64_t end = begin + 4096 < size ? begin + 4096 : size, at = begin;
        for (; at + LANES <= end; at += LANES) {
            vec value = load(x + at);
            store(gradient + at, load(gradient + at) * slope(value, share(value, exact), exact));
        }
        vec value = load_some(x + at, end - at);
        store_some(gradient + at, load_some(gradient + at, end - at) * slope(value, share(value, exact), exact), end - at);
    }
}

/* out [num_rows][width] = gelu(left) x right, where a row of x is left and then right. */
void gated_gelu(const float *x, float *out, int64_t num_rows, int64_t width, int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t row = 0; row < num_rows; row++) {
        const float *left = x + 2 * row * width, *right = left + width;
        float *to = out + row * width;
        int64_t column = 0, rest = width % LANES;
        for (; column + LANES <= width; column += LANES) {
            vec value = load(left + column);
            store(to + column, value * normal(value) * load(right + column));
        }
        vec value = load_some(left + column, rest);
        store_some(to + column, value * normal(value) * load_some(right + column, rest), rest);
    }
}

/* of_x [num_rows][2][width] from the gradient [num_rows][width] of what left. */
void gated_gelu_backward(const float *x, const float *gradient, float *of_x, int64_t num_rows, int64_t width,
                         int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t row = 0; row < num_rows; row++) {
        const float *left = x + 2 * row * width, *right = left + width, *own = gradient + row * width;
        float *of_left = of_x + 2 * row * width, *of_right = of_left + width;
        int64_t column = 0, rest = width % LANES;
        for (; column + LANES <= width; column += LANES) {
            vec value = load(left + column), part = normal(value), toward = load(own + column);
            store(of_right + column, toward * value * part);
            store(of_left + column, toward * load(right + column) * slope(value, part, 1));
        }
        vec value = load_some(left + column, rest), part = normal(value), toward = load_some(own + column, rest);
        store_some(of_right + column, toward * value * part, rest);
        store_some(of_left + column, toward * load_some(right + column, rest) * slope(value, part, 1), rest);
    }
}
