/* The one thing in which the libraries differ. */
#include "fake_private.h"

const unsigned fake_minor = FAKE_MINOR;
