/* What the baselines share: arrays with halo cells, start values, and the commands that the benchmark sends.
 *
 * Usage: program NX NY NZ. Commands on standard input, one per line:
 *   run N   advances N steps and prints the seconds that they took
 *   dump    writes all fields without halo cells, in the order of `fields`, x slowest
 * The macros REAL, DT and ORDER come from the command line of the compiler. A program of two axes has NY = 1 and no halo along y.
 *
 * Rows start at a multiple of 64 bytes, and the arrays ask for huge pages as Torre's do. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef REAL real;

#define HALO (ORDER / 2)
#ifndef HALO_Y
#define HALO_Y HALO
#endif
/* Elements before the first cell of a row. */
#define LEAD 16

static long nx, ny, nz;
/* From a cell to its neighbours along x and y, in elements. */
static long sx, sy;

static inline long at(long i, long j, long k) { return (i + HALO) * sx + (j + HALO_Y) * sy + k + LEAD; }

static real *array(void)
{
    size_t bytes = ((nx + 2 * HALO) * sx + 2 * LEAD) * sizeof(real);
    size_t page = 2 << 20;
    bytes = (bytes + page - 1) / page * page;
    real *a = aligned_alloc(page, bytes);
    if (!a) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
#ifdef MADV_HUGEPAGE
    madvise(a, bytes, MADV_HUGEPAGE);
#endif
#pragma omp parallel for
    for (long i = 0; i < nx + 2 * HALO; i++)
        memset(a + i * sx, 0, sx * sizeof(real));
    memset(a + (nx + 2 * HALO) * sx, 0, 2 * LEAD * sizeof(real));
    return a;
}

/* Noise between -1/2 and 1/2 that the benchmark gives to Torre as well; exact in both precisions. */
static inline real noise(uint32_t field, uint32_t i, uint32_t j, uint32_t k)
{
    uint32_t u = i * 73856093u ^ j * 19349663u ^ k * 83492791u ^ field * 2654435761u;
    u ^= u >> 15;
    u *= 2246822519u;
    u ^= u >> 13;
    return (real)(u & 0xffff) / 65536 - (real)0.5;
}

static real *field(uint32_t number)
{
    real *a = array();
#pragma omp parallel for
    for (long i = 0; i < nx; i++)
        for (long j = 0; j < ny; j++)
            for (long k = 0; k < nz; k++)
                a[at(i, j, k)] = noise(number, i, j, k);
    return a;
}

/* An array with the values of an expression in i, j, k. */
#define FILL(a, expression)                                                                                            \
    do {                                                                                                               \
        _Pragma("omp parallel for") for (long i = 0; i < nx; i++) for (long j = 0; j < ny; j++) for (long k = 0; k < nz; \
                                                                                                     k++)              \
            (a)[at(i, j, k)] = (expression);                                                                           \
    } while (0)

/* The differences at half a cell above and below, times dt. */
#if ORDER == 2
#define UP(f, s) (c1 * (f[n + s] - f[n]))
#define DOWN(f, s) (c1 * (f[n] - f[n - s]))
#define DIFFERENCES const real c1 = DT
#elif ORDER == 4
#define UP(f, s) (c1 * (f[n + s] - f[n]) + c2 * (f[n + 2 * s] - f[n - s]))
#define DOWN(f, s) (c1 * (f[n] - f[n - s]) + c2 * (f[n + s] - f[n - 2 * s]))
#define DIFFERENCES const real c1 = DT * 9 / 8., c2 = -DT / 24.
#endif

/* Defined by the program. */
static void start(void);
static void step(void);
static int fields(real **list);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    nx = atol(words[1]);
    ny = atol(words[2]);
    nz = atol(words[3]);
    sy = (LEAD + nz + HALO + 15) / 16 * 16;
    sx = (ny + 2 * HALO_Y) * sy;
    start();
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        long steps;
        if (sscanf(line, "run %ld", &steps) == 1) {
            double begin = now();
            for (long s = 0; s < steps; s++)
                step();
            printf("%.9f\n", now() - begin);
        } else if (!strncmp(line, "dump", 4)) {
            real *list[16];
            int total = fields(list);
            for (int f = 0; f < total; f++)
                for (long i = 0; i < nx; i++)
                    for (long j = 0; j < ny; j++)
                        fwrite(list[f] + at(i, j, 0), sizeof(real), nz, stdout);
        }
        fflush(stdout);
    }
    return 0;
}
