# OpenCombine comes with Foil.
/^import Combine$/d
# Linux has no Objective-C; every wrapper can be observed.
s/@objc dynamic //
