// Watch
