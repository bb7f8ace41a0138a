/* Maxwell's equations in vacuum on Yee's lattice, order 2 or 4 in space. */
#include "common.h"

static real *ex, *ey, *ez, *hx, *hy, *hz;

static void start(void)
{
    ex = field(0), ey = field(1), ez = field(2);
    hx = field(3), hy = field(4), hz = field(5);
}

static int fields(real **list)
{
    real *all[] = {ex, ey, ez, hx, hy, hz};
    memcpy(list, all, sizeof all);
    return 6;
}

static void advance_h(real *restrict hx, real *restrict hy, real *restrict hz, const real *restrict ex,
                      const real *restrict ey, const real *restrict ez)
{
    DIFFERENCES;
#pragma omp parallel for
    for (long i = 0; i < nx; i++)
        for (long j = 0; j < ny; j++) {
            long row = at(i, j, 0);
#pragma GCC ivdep
            for (long n = row; n < row + nz; n++) {
                hx[n] += UP(ey, 1) - UP(ez, sy);
                hy[n] += UP(ez, sx) - UP(ex, 1);
                hz[n] += UP(ex, sy) - UP(ey, sx);
            }
        }
}

static void advance_e(real *restrict ex, real *restrict ey, real *restrict ez, const real *restrict hx,
                      const real *restrict hy, const real *restrict hz)
{
    DIFFERENCES;
#pragma omp parallel for
    for (long i = 0; i < nx; i++)
        for (long j = 0; j < ny; j++) {
            long row = at(i, j, 0);
#pragma GCC ivdep
            for (long n = row; n < row + nz; n++) {
                ex[n] += DOWN(hz, sy) - DOWN(hy, 1);
                ey[n] += DOWN(hx, 1) - DOWN(hz, sx);
                ez[n] += DOWN(hy, sx) - DOWN(hx, sy);
            }
        }
}

static void step(void)
{
    advance_h(hx, hy, hz, ex, ey, ez);
    advance_e(ex, ey, ez, hx, hy, hz);
}
