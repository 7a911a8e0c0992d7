// Each thread would load tap's loader, named in NODE_OPTIONS, which takes longer than the work of most threads. The tests of
// the store do not import this file, because they measure the coverage of the threads.
delete process.env.NODE_OPTIONS
