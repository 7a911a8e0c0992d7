import { calls } from './driver/calls.ts'
import { expose } from './expose.ts'

// The driver's process: it sends requests, checks answers and measures times. Nothing else runs in it.

expose(calls)
process.send!({ ready: {} })
