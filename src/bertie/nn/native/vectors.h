/* What the kernels share: vectors as wide as the processor's, the exponential, and dropout by place. */

#ifndef BERTIE_VECTORS_H
#define BERTIE_VECTORS_H

#include <stdint.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint32_t uvec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

#if LANES == 16
static const uvec NUMBERS = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
static const uvec NUMBERS = {0, 1, 2, 3, 4, 5, 6, 7};
#endif

static inline vec load(const float *from) { return *(const vec *)from; }
static inline void store(float *to, vec value) { *(vec *)to = value; }
static inline vec all(float value) { return value - (vec){0}; }
static inline vec choose(ivec which, vec yes, vec no) { return (vec)(((ivec)yes & which) | ((ivec)no & ~which)); }
static inline vec larger(vec a, vec b) { return choose(a > b, a, b); }

static inline float sum_of(vec value) {
    float sum = 0.0f;
    for (int lane = 0; lane < LANES; lane++) sum += value[lane];
    return sum;
}

static inline float largest_of(vec value) {
    float largest = value[0];
    for (int lane = 1; lane < LANES; lane++) largest = value[lane] > largest ? value[lane] : largest;
    return largest;
}

/* e^x for x <= 0: 2^n by the exponent's bits, the rest by a polynomial (relative error below 2e-7). */
static inline vec exponential(vec x) {
    x = larger(x, all(-87.0f));
    vec scaled = x * 1.44269504f;
    vec shifted = scaled + 12582912.0f; /* 1.5 * 2^23: rounds to a whole number */
    vec whole = shifted - 12582912.0f;
    vec rest = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    vec sum = all(1.9875691500e-4f);
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    ivec power = ((ivec)shifted - 0x4B400000 + 127) << 23;
    return sum * (vec)power;
}

typedef struct {
    uint64_t seed;
    uint32_t drop; /* a number is dropped when its 32 random bits are below; 0: none is */
    float grow;    /* what stays is multiplied by this */
} dropout;

/* The dropout of one piece of work, its seed by the finaliser of splitmix64. */
static inline dropout dropout_of(uint64_t seed, float rate, uint64_t piece) {
    uint64_t mixed = seed + (piece + 1) * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    dropout own = {mixed ^ (mixed >> 31), (uint32_t)(rate * 4294967296.0), 1.0f / (1.0f - rate)};
    return own;
}

/* All bits where the LANES numbers from a place of the piece on stay. The finaliser of murmur3, keyed twice. */
static inline ivec staying(const dropout *dropped, uint32_t place) {
    uvec bits = (place + NUMBERS) * 0x9E3779B1u ^ (uint32_t)dropped->seed;
    bits ^= bits >> 16;
    bits *= 0x85EBCA6Bu;
    bits ^= (bits >> 13) ^ (uint32_t)(dropped->seed >> 32);
    bits *= 0xC2B2AE35u;
    bits ^= bits >> 16;
    return (ivec)(bits >= dropped->drop);
}

#endif
