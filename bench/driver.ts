import { calls } from './driver/calls.ts'
import { expose } from './expose.ts'

// The process that drives: it makes the requests, checks the answers and takes the times. Nothing else runs in it.

expose(calls)
process.send!({ ready: {} })
