/** The messages between the processes of a benchmark, and the results of a case. */

/** Requests for one server, sent in rotation. */
export interface Load {
  /** Complete HTTP/1.1 requests. `{counter}` becomes a number of ten digits, a new one each time. */
  requests: string[]
  /** Text that the answer to the request at the same index must contain. */
  proofs?: string[]
  /** Expected status; 200 by default. */
  status?: number
  /** Answers to the same request differ in content, not in length: only status and length are checked. */
  volatile?: boolean
  /** Each request is good for one use: a run ends with the last. */
  once?: boolean
}

export interface RunOptions {
  seconds: number
  connections: number
  /** Requests per second, sent on schedule. Absent: a connection sends its next request when the answer has arrived. */
  rate?: number
}

/** Result of a run. Times are in milliseconds. */
export interface RunResult {
  /** Answers per second within the counted time. */
  rate: number
  p50: number
  p99: number
  max: number
  /** All answers, those outside the counted time included. */
  answers: number
  /** From the first request to the last answer. */
  elapsed: number
  /** Share of a core that the driver used, 0 to 1. */
  driverCpu: number
}

/** Times are in milliseconds from the request. */
export interface DownloadResult {
  bytes: number
  elapsed: number
  /** To the first byte of the body. */
  firstByte: number
}

/** Resources that a server process has used since its start. */
export interface Usage {
  /** Microseconds of processor time: of all threads, and of the main one. */
  cpu: number
  main: number
  /** Bytes. */
  rss: number
  /** Milliseconds that the event loop was busy, and idle. */
  active: number
  idle: number
}

export interface RepeatOptions {
  seconds: number
  concurrency: number
}

/** Calls that a server process answers; `repeat` only in the case `create`. */
export type ServerCalls = { usage: (params: null) => Promise<Usage>, repeat: (options: RepeatOptions) => Promise<Sample> }

/** Sent by a server process once it listens. */
export interface Ready {
  port: number
  load?: Load
}

export interface ServerSpec {
  label: string
  /** Relative to servers/. */
  file: string
  /** Read by the server, see servers/serve.ts. */
  options?: object
  /** Cores it may use: 1, the default, not the driver's; or 2. */
  cores?: 1 | 2
  /** Options for node. */
  flags?: string[]
  /** The whole environment except PATH. Absent: that of the benchmark, in production. */
  env?: Record<string, string>
  /** Its stdout goes to /dev/null. */
  quiet?: boolean
}

/** One measurement: values by metric. */
export type Sample = Record<string, number>

/** One row of a case's table, measured once per round. */
export interface Subject {
  label: string
  /** The row it is compared with; absent: the case's baseline. */
  baseline?: string
  measure (): Promise<Sample>
}

export interface Column {
  metric: string
  title: string
  digits: number
  /** Processor time: the report shows the first quartile and the least, because a disturbance only adds to it. */
  isCost?: true
}

export interface Row {
  label: string
  baseline: string
  samples: Sample[]
}

/** Result of a case. */
export interface CaseResult {
  name: string
  title: string
  notes: string[]
  columns: Column[]
  /** Metrics for which a row is compared with its baseline. */
  compared: string[]
  baseline: string
  rows: Row[]
  /** A table below that of the rows: its head, and its lines. */
  details?: string[][]
}
