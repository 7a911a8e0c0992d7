import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { Meter, Reading } from './meter.ts'

/** Seconds. A cached token check takes some tens of microseconds, and a password check most of a second. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const STORE_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 10]

/** Gauges of prom-client with the suffix of a counter, which `promtool check metrics` refuses. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/** Milliseconds that a scrape waits for its readings. A store that does not answer leaves gauges out, and never the whole scrape. */
const PATIENCE = 1_000

const GIVEN_UP: readonly Parameters<Meter['gaveUp']>[0][] = ['mail', 'logout', 'webhook', 'secret']

const FORMATS = { openmetrics: Registry.OPENMETRICS_CONTENT_TYPE, prometheus: Registry.PROMETHEUS_CONTENT_TYPE } as const

/** Reads all gauges at once. Scrapes at the same time share it, and so does one that comes while a reading still hangs. */
class Readings {
  readonly #gauges: { gauge: Gauge, reading: Reading, pending?: Promise<void> | undefined }[] = []

  add (gauge: Gauge, reading: Reading): void {
    this.#gauges.push({ gauge, reading })
  }

  async take (): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, PATIENCE) })
    await Promise.all(this.#gauges.map(async (one) => {
      const { gauge } = one
      let isRead = false
      const read = async () => {
        // A failed reading must not hide all others.
        const value = await Promise.resolve().then(one.reading).catch(() => undefined)
        one.pending = undefined
        if (value === undefined) gauge.remove()
        else gauge.set(value)
      }
      one.pending ??= read()
      await Promise.race([one.pending.then(() => { isRead = true }), late])
      if (!isRead) gauge.remove()
    }))
    clearTimeout(timer)
  }
}

/** Creates a meter with its own registry and the metrics of the process: CPU, memory, garbage collection, event-loop delay. */
export function createMeter (version: string): Meter {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  for (const name of MISNAMED) registry.removeSingleMetric(name)

  new Gauge({ name: 'identity_build_info', help: 'The version of the service.', labelNames: ['version'], registers }).set({ version }, 1)
  const requests = new Histogram({
    name: 'http_request_duration_seconds', help: 'Duration of HTTP requests until the response has ended.', labelNames: ['method', 'route', 'status'], buckets: REQUEST_BUCKETS, registers
  })
  const signIns = new Counter({
    name: 'identity_sign_ins_total', help: 'Submitted sign-in forms.', labelNames: ['outcome', 'method'], registers
  })
  const tokens = new Counter({
    name: 'identity_tokens_issued_total', help: 'Responses that issued an access token.', labelNames: ['grant'], registers
  })
  const checks = new Counter({
    name: 'identity_token_checks_total',
    help: 'Requests with a bearer token, by the outcome of its ' +
    'check.',
    labelNames: ['outcome'],
    registers
  })
  const calls = new Histogram({
    name: 'identity_store_duration_seconds',
    help: 'Duration of store operations.',
    labelNames: ['operation', 'outcome'],
    buckets: STORE_BUCKETS,
    registers
  })
  const questions = new Counter({
    name: 'identity_former_system_questions_total', help: 'Questions to the old system that people move from.', labelNames: ['outcome'], registers
  })
  const given = new Counter({ name: 'identity_work_given_up_total', help: 'Work of this kind that was given up.', labelNames: ['kind'], registers })
  // From 0 on, so that the first one is an increase.
  for (const kind of GIVEN_UP) given.inc({ kind }, 0)
  const outages = new Counter({
    name: 'identity_outages_begun_total', help: 'Outages of receivers of this kind that have begun.', labelNames: ['kind'], registers
  })
  const lists = new Gauge({ name: 'identity_list_cursors', help: 'Cursors of lists that are being read.', registers })

  async function write (format: keyof typeof FORMATS): Promise<{ type: string, text: string }> {
    // For OpenMetrics, prom-client removes `_total` from the names of counters and never restores it.
    for (const metric of registry.getMetricsAsArray() as unknown as { name: string, type: string }[]) {
      if (metric.type === 'counter' && !metric.name.endsWith('_total')) metric.name += '_total'
    }
    registry.setContentType(FORMATS[format] as typeof registry.contentType)
    return { type: FORMATS[format], text: await registry.metrics() }
  }
  const readings = new Readings()
  // Renderings run one after the other, because the registry stores the format.
  let last: Promise<unknown> = Promise.resolve()

  return {
    request: (labels, seconds) => requests.observe(labels, seconds),
    signIn: (outcome, method) => signIns.inc({ outcome, method }),
    tokens: (grant) => tokens.inc({ grant }),
    tokenCheck: (outcome) => checks.inc({ outcome }),
    store: (operation, outcome, seconds) => calls.observe({ operation, outcome }, seconds),
    formerSystem: (outcome) => questions.inc({ outcome }),
    gaveUp: (kind) => given.inc({ kind }),
    outage: (kind) => outages.inc({ kind }),
    lists: (change) => lists.inc(change),
    read (name, help, reading) {
      readings.add(new Gauge({ name: `identity_${name}`, help, registers }), reading)
    },
    readEach (name, label, help, reading) {
      const gauge: Gauge = new Gauge({
        name: `identity_${name}`,
        help,
        labelNames: [label],
        registers,
        collect () {
          gauge.reset()
          for (const [value, number] of Object.entries(reading())) gauge.set({ [label]: value }, number)
        }
      })
    },
    async render (format) {
      await readings.take()
      const rendered = last.then(() => write(format))
      last = rendered.catch(() => {})
      return await rendered
    }
  }
}
