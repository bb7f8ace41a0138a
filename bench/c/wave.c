/* The wave equation u_tt = c^2 laplacian(u) with a speed per node, order 2 or 8 in space. */
#include "common.h"

static real *u, *older, *c;

static double speed(double x, double y, double z) { return 0.6 + 0.0005 * x + 0.0001 * y + 0.0001 * z; }

static void start(void)
{
    u = field(0), older = field(1);
    c = array();
    FILL(c, DT * DT * speed(i, j, k) * speed(i, j, k));
}

static int fields(real **list)
{
    list[0] = u;
    list[1] = older;
    return 2;
}

#define PAIR(d) (u[n + d] + u[n - d])
#define RING(d) (PAIR(d) + PAIR(d * sy) + PAIR(d * sx))

static void advance(real *restrict older, const real *restrict u, const real *restrict c)
{
#if ORDER == 8
    const real w0 = -3 * 205 / 72., w1 = 8 / 5., w2 = -1 / 5., w3 = 8 / 315., w4 = -1 / 560.;
#else
    const real w0 = -6;
#endif
#pragma omp parallel for
    for (long i = 0; i < nx; i++)
        for (long j = 0; j < ny; j++) {
            long row = at(i, j, 0);
#pragma GCC ivdep
            for (long n = row; n < row + nz; n++) {
#if ORDER == 8
                real laplacian = w0 * u[n] + w1 * RING(1) + w2 * RING(2) + w3 * RING(3) + w4 * RING(4);
#else
                real laplacian = w0 * u[n] + RING(1);
#endif
                older[n] = 2 * u[n] - older[n] + c[n] * laplacian;
            }
        }
}

static void step(void)
{
    advance(older, u, c);
    real *newest = older;
    older = u;
    u = newest;
}
