/* Maxwell's equations in vacuum on two axes, H across the plane, order 2 or 4 in space. Rows run along the second axis, z here. */
#define HALO_Y 0
#include "common.h"

static real *ex, *ey, *hz;

static void start(void) { ex = field(0), ey = field(1), hz = field(2); }

static int fields(real **list)
{
    real *all[] = {ex, ey, hz};
    memcpy(list, all, sizeof all);
    return 3;
}

static void advance_h(real *restrict hz, const real *restrict ex, const real *restrict ey)
{
    DIFFERENCES;
#pragma omp parallel for
    for (long i = 0; i < nx; i++) {
        long row = at(i, 0, 0);
#pragma GCC ivdep
        for (long n = row; n < row + nz; n++)
            hz[n] += UP(ex, 1) - UP(ey, sx);
    }
}

static void advance_e(real *restrict ex, real *restrict ey, const real *restrict hz)
{
    DIFFERENCES;
#pragma omp parallel for
    for (long i = 0; i < nx; i++) {
        long row = at(i, 0, 0);
#pragma GCC ivdep
        for (long n = row; n < row + nz; n++) {
            ex[n] += DOWN(hz, 1);
            ey[n] -= DOWN(hz, sx);
        }
    }
}

static void step(void)
{
    advance_h(hz, ex, ey);
    advance_e(ex, ey, hz);
}
