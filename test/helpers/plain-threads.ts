// Each thread would load tap's loader, named in NODE_OPTIONS, which takes longer than what most threads do. The tests of the
// store do not import this file: they measure which code of the threads runs.
delete process.env.NODE_OPTIONS
