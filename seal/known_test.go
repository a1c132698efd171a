package seal_test

// Made once by this package; the data key is 32 times 7, the static key 32 times k.
const (
	knownEmpty   = "44f942c84d90272740a6ff0a63f95ecac00c6d25696f7cc66eebd2ff"
	knownArgs    = "9d0cc3b232e9e3bed439fc1842df24fe2cdf655289e6b1d1d72083fa58ed5cb704bda1032f359c94aa5d2e"
	knownWrapped = "d45828161632688d3220c28264e83b75e56ffe193bdb681a2c7220432d82591730e720afcdc72d7ea8e221c589fdb64ed0210622b89187305cca83ca"
)
