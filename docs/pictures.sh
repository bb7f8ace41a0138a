#!/bin/sh
# Draws the pictures of the book again. It runs the examples, some with more frames than they ask for, and the programs of the
# tutorial, and copies the pictures of their results to docs/src/pictures. Needs a few minutes and 2 GB of memory; the program is
# $TORRE, `torre` without it.
#
#     docs/pictures.sh              all of them
#     docs/pictures.sh 06 11        the pictures of some examples
#     docs/pictures.sh tutorial     the pictures of the tutorial
#
# The drawings of cones and tiles (`.svg`) come from a test: UPDATE_PICTURES=1 cargo test -p torre-compiler pictures
set -eu

torre=${TORRE:-torre}
book=$(cd "$(dirname "$0")" && pwd)
examples=$book/../examples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$examples/media" "$work/media"

# draw NUMBER NAME PICTURE FROM TO [OPTION...]: runs an example in which FROM is replaced by TO, and copies one of its pictures.
draw() {
    number=$1 name=$2 picture=$3 from=$4 to=$5
    shift 5
    case " $chosen " in *" all "* | *" $number "*) ;; *) return 0 ;; esac
    sed "s/${from:-^}/$to/" "$examples/$number-$name.torre" >"$work/$number-$name.torre"
    "$torre" run "$work/$number-$name.torre" --quiet --out "$work/$number" "$@"
    cp "$work/$number/$picture" "$book/src/pictures/$number-$name.png"
    echo "$number-$name.png"
}

# setup NUMBER NAME [OPTION...]: draws an example before its first step.
setup() {
    number=$1 name=$2
    shift 2
    case " $chosen " in *" all "* | *" $number "*) ;; *) return 0 ;; esac
    "$torre" check "$examples/$number-$name.torre" --quiet --picture "$book/src/pictures/setup-$name.png" "$@"
    echo "setup-$name.png"
}

# tutorial NAME PICTURE [OPTION...]: runs a program of the tutorial and copies one of its pictures.
tutorial() {
    name=$1 picture=$2
    shift 2
    case " $chosen " in *" all "* | *" tutorial "*) ;; *) return 0 ;; esac
    (cd "$work/tutorial" && "$torre" run "$name.torre" --quiet --out "$name" "$@")
    cp "$work/tutorial/$name/$picture" "$book/src/pictures/tutorial-$name.png"
    echo "tutorial-$name.png"
}

# The programs of the tutorial; the first line of each names its file.
mkdir "$work/tutorial"
awk -v folder="$work/tutorial" '
    /^```/ { file = ""; begins = /^```torre/; next }
    begins { file = folder "/" substr($0, 4); begins = 0 }
    file   { print > file }
' "$book/src/tutorial.md"

chosen=${*:-all}
draw 01 wave1d volumes/u.png 'every 40' 'every 2'
draw 02 wave2d volumes/u-00000300.png '' ''
draw 03 wave3d-order8 slices/u-z32-00000160.png '' ''
draw 04 maxwell1d probes.png '' ''
draw 05 maxwell-te2d volumes/Hz-00000250.png '' ''
draw 06 maxwell-tm2d volumes/Ez-00000500.png '' ''
draw 07 acoustics2d volumes/p-00000450.png '' '' --down y
draw 08 maxwell42 slices/E.z-z128-00000160.png '256 x 256 x 256' '128 x 128 x 144' --set steps=160
draw 09 cavity slices/E.y-y12-00000320.png '' ''
draw 10 materials volumes/Ez-00001000.png '' ''
draw 11 elastic2d volumes/v.y-00000450.png '' '' --down y
draw 12 elastic3d slices/v.x-z36-00000120.png '' ''
draw 13 diffusion volumes/T-00005000.png '' ''
draw 14 kerr probes.png '' ''
draw 15 gray-scott volumes/v-00004000.png '' ''
draw 16 burgers volumes/u.png 'every 50' 'every 1'
draw 17 scattering volumes/Ez-00000300.png '' ''
draw 18 own-layer volumes/Ez-00000240.png '' ''
setup 06 maxwell-tm2d
setup 08 maxwell42
tutorial pluck probes.png
tutorial heavy volumes/u.png
tutorial lens volumes/p-00000300.png
tutorial dipole slices/E.z-z32-00000125.png --range E.z=-0.006..0.006
