//! Problems that are measured on GPUs, in few cells: measurements state their own grids.

pub const MEDIA: &str = "use std::curl::curl
scheme media {
  axes x, y, z
  param h  = 1
  param dt = 0.45 * h
  coef inverse_eps : vector on edges = 0.75 + 0.0001 * x
  field E : vector on edges
  field H : vector on faces at 1/2
  step {
    H -= dt * curl(E, order = 4)
    E += inverse_eps * curl(H, order = 4)
  }
}
problem bench {
  scheme media
  domain 8 x 8 x 8
  steps 1
}
";

pub const HEAT2: &str = "use std::laplacian::laplacian
scheme heat {
  axes x, y
  param order = 2
  param h     = 1
  param dt    = 0.15 * h^2
  field T : scalar on nodes
  step {
    T += dt * laplacian(T, order)
  }
}
problem bench {
  scheme heat
  domain 8 x 8
  steps 1
}
";

pub const HEAT4: &str = "use std::laplacian::laplacian
scheme heat {
  axes x, y
  param order = 4
  param h     = 1
  param dt    = 0.1 * h^2
  field T : scalar on nodes
  step {
    T += dt * laplacian(T, order)
  }
}
problem bench {
  scheme heat
  domain 8 x 8
  steps 1
}
";

pub const TE2: &str = "use std::maxwell::maxwell_te
problem bench {
  scheme maxwell_te { order = 2 }
  domain 8 x 8
  coef eps = 1.5 + 0.0001 * x
  steps 1
}
";

pub const TE4: &str = "use std::maxwell::maxwell_te
problem bench {
  scheme maxwell_te { order = 4 }
  domain 8 x 8
  coef eps = 1.5 + 0.0001 * x
  steps 1
}
";

pub const TM2: &str = "use std::maxwell::maxwell_tm
problem bench {
  scheme maxwell_tm { order = 2 }
  domain 8 x 8
  coef eps = 1.5 + 0.0001 * x
  steps 1
}
";

pub const ELASTIC2D: &str = "use std::elastic::elastic_2d
problem bench {
  scheme elastic_2d { order = 4 }
  domain 8 x 8
  coef rho = 1 + 0.0005 * y
  coef lambda = 0.5 + 0.0005 * x
  coef mu = 0.5 + 0.0005 * x
  steps 1
}
";

pub const WAVE1D: &str = "use std::wave::wave_1d
problem bench {
  scheme wave_1d
  domain 64
  steps 1
}
";

pub const PLANE: &str = "use std::maxwell::maxwell42
problem bench {
  scheme maxwell42
  domain 8 x 8 x 32
  steps 1
  source E.x in z = 20..21 += 0.01 * sin(0.2 * t)
}
";

pub const BEAM: &str = "use std::maxwell::maxwell42
problem bench {
  scheme maxwell42
  domain 8 x 8 x 32
  steps 1
  source E.x in z = 20..21 += sin(0.2 * t) * 0.01 * cos(0.001 * x) * cos(0.002 * y)
}
";

pub const SLAB: &str = "use std::maxwell::maxwell42
problem bench {
  scheme maxwell42
  domain 8 x 8 x 32
  steps 1
  source E.x in z = 8..12 += sin(0.2 * t) * 0.01 * cos(0.001 * x) * cos(0.1 * z)
}
";

pub const LAYERS42: &str = "use std::maxwell::maxwell42
problem bench {
  scheme maxwell42
  domain 48 x 48 x 64
  boundary x: cpml(10), y: cpml(10), z: cpml(10)
  steps 1
}
";

pub const LAYERS22: &str = "use std::maxwell::maxwell22
problem bench {
  scheme maxwell22
  domain 48 x 48 x 64
  boundary x: cpml(10), y: cpml(10), z: cpml(10)
  steps 1
}
";

/// [`LAYERS42`] with walls where its layers end.
pub const WALLS42: &str = "use std::maxwell::maxwell42
problem bench {
  scheme maxwell42
  domain 48 x 48 x 64
  boundary x: pec, y: pec, z: pec
  steps 1
}
";

pub const WALLS22: &str = "use std::maxwell::maxwell22
problem bench {
  scheme maxwell22
  domain 48 x 48 x 64
  boundary x: pec, y: pec, z: pec
  steps 1
}
";
