/** What the processes of a benchmark tell each other, and what a case is. */

/** Requests that exercise a server, in rotation. */
export interface Load {
  /** Whole HTTP/1.1 requests. `{counter}` is replaced by a number of ten digits that never comes again. */
  requests: string[]
  /** A text that the answer to the request of the same index must hold. */
  proofs?: string[]
  /** The status of a good answer; 200. */
  status?: number
  /** Answers to one request differ, though not in length: each is checked for its status and length, not its bytes. */
  volatile?: boolean
}

export interface RunOptions {
  seconds: number
  connections: number
  /** Requests a second, sent on time whatever the answers do. Absent: each connection sends when its answer is in. */
  rate?: number
}

/** What the driver saw. Times are milliseconds. */
export interface RunResult {
  /** Answers within the counted time, a second. */
  rate: number
  p50: number
  p99: number
  max: number
  /** Answers in all, those before and after the counted time too. */
  answers: number
  /** Milliseconds from the first request to the last answer. */
  elapsed: number
  /** Part of a core that the driver itself used, 0 to 1. */
  driverCpu: number
}

export interface DownloadResult {
  bytes: number
  /** Milliseconds from the request to the last byte. */
  elapsed: number
  /** Milliseconds from the request to the first byte of the body. */
  firstByte: number
}

/** What a server process used since its start. */
export interface Usage {
  /** Microseconds of processor time, all threads. */
  cpu: number
  /** Bytes. */
  rss: number
  /** Milliseconds the event loop worked, and waited. */
  active: number
  idle: number
}

export interface RepeatOptions {
  seconds: number
  concurrency: number
}

/** What every server process can be asked; `repeat` those of the case `create`. */
export type ServerCalls = { usage: (params: null) => Promise<Usage>, repeat: (options: RepeatOptions) => Promise<Sample> }

/** What a server process says when it listens. */
export interface Ready {
  port: number
  load?: Load
}

export interface ServerSpec {
  label: string
  /** A file of servers/. */
  file: string
  /** Read by the server, see servers/serve.ts. */
  options?: object
  /** Cores it may use: 1, the default, beside the driver's; or 2. */
  cores?: 1 | 2
  /** Node's own options. */
  flags?: string[]
  /** Its output goes to /dev/null. */
  quiet?: boolean
}

/** One measurement: names of metrics and their values. */
export type Sample = Record<string, number>

/** One row of a case's table, measured once a round. */
export interface Subject {
  label: string
  /** The row it is a part of; absent: the case's. */
  baseline?: string
  measure (): Promise<Sample>
}

export interface Column {
  metric: string
  title: string
  digits: number
}

export interface Row {
  label: string
  baseline: string
  samples: Sample[]
}

/** What came of a case: its rows, in the order of its servers. */
export interface CaseResult {
  name: string
  title: string
  notes: string[]
  columns: Column[]
  /** What a row is compared with its baseline by. */
  metric: string
  baseline: string
  rows: Row[]
}
