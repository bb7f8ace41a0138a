/* The bandwidth of copying and of a sum of two arrays into a third, for arrays of a given size.
 *
 * Usage: program ELEMENTS REPETITIONS, per thread. Prints the two best rates in GB/s, counting what the program reads and writes
 * (not the line that a cache may fetch before it is written). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Each in a function of its own, so that repetitions are not merged. */
__attribute__((noinline)) static void copy(float *restrict a, const float *restrict b, long n)
{
    /* Written as a loop: the library's memcpy may go around the caches. */
#pragma omp simd
    for (long i = 0; i < n; i++)
        a[i] = b[i] + 1;
}

__attribute__((noinline)) static void triad(float *restrict a, const float *restrict b, const float *restrict c, long n)
{
#pragma omp simd
    for (long i = 0; i < n; i++)
        a[i] = b[i] + 3 * c[i];
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    long n = atol(words[1]) / 16 * 16, repetitions = atol(words[2]);
    double best[2] = {1e300, 1e300};
    int threads = 1;
    float check = 0;
#pragma omp parallel reduction(+ : check)
    {
#ifdef _OPENMP
#pragma omp single
        threads = omp_get_num_threads();
#endif
        float *a = aligned_alloc(64, n * sizeof *a), *b = aligned_alloc(64, n * sizeof *b),
              *c = aligned_alloc(64, n * sizeof *c);
        if (!a || !b || !c)
            exit(1);
        for (long i = 0; i < n; i++)
            a[i] = 0, b[i] = i, c[i] = 1;
        for (int round = 0; round < 5; round++)
            for (int kind = 0; kind < 2; kind++) {
#pragma omp barrier
                double begin = now();
                for (long r = 0; r < repetitions; r++)
                    if (kind)
                        triad(a, b, c, n);
                    else
                        copy(a, b, n);
#pragma omp barrier
#pragma omp single
                {
                    double time = now() - begin;
                    if (time < best[kind])
                        best[kind] = time;
                }
            }
        check += a[n / 2];
    }
    double bytes = 1e-9 * sizeof(float) * n * repetitions * threads;
    printf("%.3f %.3f\n", 2 * bytes / best[0], 3 * bytes / best[1]);
    return check == 0.5f;
}
