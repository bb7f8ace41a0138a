//! Constants of each precision. Polynomials go through the Chebyshev points of their interval.

use crate::scheme::Precision;

pub(super) struct Table {
    /// The number above which all are whole.
    pub all_whole: f64,
    /// The logarithm of 2 in two parts.
    pub ln_2: [f64; 2],
    /// The same; the first part times an exponent is exact.
    pub ln_2_short: [f64; 2],
    /// A quarter turn in three parts.
    pub quarter_turn: [f64; 3],
    /// The largest angle that is reduced.
    pub largest_angle: f64,
    pub two_thirds: [f64; 2],
    /// Below and above, the exponential function is 0 and infinite.
    pub exp_range: [f64; 2],
    /// From here on, the hyperbolic tangent is 1.
    pub tanh_is_1: f64,
    /// For exponents beyond, all powers of all numbers but 1 are 0 or infinite.
    pub largest_exponent: f64,
    /// Numbers below the first one are multiplied with the second, which is 2 to the power of the third.
    pub subnormal: [f64; 3],
    /// (e^r - 1 - r) / r^2, r to 0.348 in magnitude.
    pub exp: &'static [f64],
    /// 2/3 + 2/5 z + 2/7 z^2 + ..., z to 0.0296.
    pub log: &'static [f64],
    /// 2/5 + 2/7 z + ..., z to 0.0296.
    pub pow: &'static [f64],
    /// (sin r - r) / r^3 in z = r^2, z to 0.64.
    pub sin: &'static [f64],
    /// (cos r - 1 + r^2/2) / r^4 in z = r^2, z to 0.64.
    pub cos: &'static [f64],
}

pub(super) fn of(precision: Precision) -> &'static Table {
    match precision {
        Precision::F32 => &F32,
        Precision::F64 => &F64,
    }
}

// Digits beyond the format's say which value of the format is meant.
#[rustfmt::skip]
static F64: Table = Table {
    all_whole: 9007199254740992.0,
    ln_2: [std::f64::consts::LN_2, 2.3190468138462996e-17],
    ln_2_short: [0.6931471805598903, 5.497923018708371e-14],
    quarter_turn: [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33],
    largest_angle: 1099511627776.0,
    two_thirds: [0.6666666666666666, 3.700743415417188e-17],
    exp_range: [-746.0, 710.0],
    tanh_is_1: 20.0,
    largest_exponent: 1.180591620717411e21,
    subnormal: [1e-300, 1152921504606846976.0, 60.0],
    exp: &[
        0.5, 0.1666666666666667, 0.04166666666666667, 0.0083333333333259, 0.0013888888888883581,
        0.00019841269875637497, 2.4801587326131077e-05, 2.755725436822675e-06, 2.755727290616548e-07,
        2.510564479145537e-08, 2.091499245327924e-09,
    ],
    log: &[
        0.6666666666666666, 0.4000000000000091, 0.2857142857078221, 0.22222222396552982,
        0.18181795124476754, 0.15386267672882226, 0.1326802614042874, 0.13094416666525344,
    ],
    pow: &[
        0.4, 0.28571428571429397, 0.22222222221636845, 0.18181818339697634, 0.1538459450380989,
        0.13334829573906534, 0.1170557189567721, 0.1173010786189303,
    ],
    sin: &[
        -0.16666666666666666, 0.008333333333333331, -0.000198412698412641, 2.7557319218602575e-06,
        -2.5052105981350752e-08, 1.6058492556729892e-10, -7.584436884170301e-13,
    ],
    cos: &[
        0.041666666666666664, -0.0013888888888887096, 2.4801587298318395e-05, -2.755731704403567e-07,
        2.0876099692314926e-09, -1.1379338585298136e-11,
    ],
};

#[rustfmt::skip]
static F32: Table = Table {
    all_whole: 16777216.0,
    ln_2: [0.6931471824645996, -1.9046542121259336e-09],
    ln_2_short: [0.693145751953125, 1.428606765330187e-06],
    quarter_turn: [1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15],
    largest_angle: 131072.0,
    two_thirds: [0.6666666865348816, -1.9868215517249155e-08],
    exp_range: [-105.0, 89.0],
    tanh_is_1: 10.0,
    largest_exponent: 1099511627776.0,
    subnormal: [1e-30, 4294967296.0, 32.0],
    exp: &[
        0.5, 0.1666666716337204, 0.041666463017463684, 0.00833331048488617, 0.001393401063978672,
        0.00019891391275450587,
    ],
    log: &[0.6666668653488159, 0.3998865485191345, 0.2958568036556244],
    pow: &[0.4000000059604645, 0.28571534156799316, 0.2220456749200821, 0.19125734269618988],
    sin: &[-0.1666666716337204, 0.008333331905305386, -0.0001983999682124704, 2.7238454549660673e-06],
    cos: &[0.0416666641831398, -0.0013888258254155517, 2.4538474463042803e-05],
};
