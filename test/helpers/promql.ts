import { type Sample, parseOpenMetrics } from './openmetrics.ts'

// As much of PromQL as deploy/alerts.yaml uses: selectors with ranges and offsets, comparisons, +, *, `or`, sum, max, rate, increase,
// predict_linear and vector. Times are seconds.

const LOOKBACK = 300
const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 }

interface Point { time: number, value: number }
interface Series { name: string, labels: Record<string, string>, points: Point[] }
interface Element { labels: Record<string, string>, value: number }
type Value = number | Element[]
type Evaluate = (time: number) => Value

const toSeconds = (text: string): number => Number(text.slice(0, -1)) * SECONDS[text.at(-1)!]!
const toKey = (labels: Record<string, string>): string => JSON.stringify(Object.entries(labels).sort())
const only = (labels: Record<string, string>, names: readonly string[]) => Object.fromEntries(Object.entries(labels).filter(([name]) => names.includes(name)))

/** What a Prometheus server has scraped of one instance. */
export class Scrapes {
  readonly series = new Map<string, Series>()
  time = 0

  /** Adds a scrape at a time. @param text undefined when the instance did not answer */
  add (time: number, text: string | undefined): void {
    this.time = time
    const samples = text === undefined ? [] : [...parseOpenMetrics(text).values()].flatMap((family) => family.samples)
    for (const sample of [...samples, { name: 'up', labels: {}, value: Number(text !== undefined) }] satisfies Sample[]) {
      const labels = { ...sample.labels, job: 'identity', instance: 'one' }
      const key = sample.name + toKey(labels)
      const series: Series = this.series.get(key) ?? { name: sample.name, labels, points: [] }
      this.series.set(key, series)
      series.points.push({ time, value: sample.value })
    }
  }
}

/** The points of the matching series in a span of time. */
type Range = (from: number, to: number) => { labels: Record<string, string>, points: Point[] }[]

const increase = (points: Point[]): number => points.slice(1).reduce((sum, { value }, index) => {
  const before = points[index]!.value
  return sum + (value >= before ? value - before : value)
}, 0)

/** By least squares. */
function predict (points: Point[], time: number): number {
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean((point) => point.time), mean((point) => point.value)]
  const slope = mean((point) => (point.time - x) * (point.value - y)) / mean((point) => (point.time - x) ** 2)
  return y + slope * (time - x)
}

class Parser {
  readonly #tokens: string[]
  readonly #scrapes: Scrapes

  constructor (text: string, scrapes: Scrapes) {
    this.#tokens = text.match(/[a-zA-Z_:][\w:]*|\d+[smhd]\b|\d+(?:\.\d+)?|"[^"]*"|=~|!=|==|[-+*/<>=(){}[\],]/g) ?? []
    this.#scrapes = scrapes
  }

  parse (): Evaluate {
    const found = this.#or()
    if (this.#tokens.length > 0) throw new Error(`PromQL that the tests do not know: ${this.#tokens.join(' ')}`)
    return found
  }

  #take (token: string): boolean {
    if (this.#tokens[0] !== token) return false
    this.#tokens.shift()
    return true
  }

  #expect (token: string): void {
    if (!this.#take(token)) throw new Error(`PromQL: ${token} is expected before ${this.#tokens.join(' ')}`)
  }

  #or (): Evaluate {
    let left = this.#compare()
    while (this.#take('or')) {
      const [one, other] = [left, this.#compare()]
      left = (time) => {
        const [first, second] = [one(time) as Element[], other(time) as Element[]]
        return [...first, ...second.filter(({ labels }) => !first.some((known) => toKey(known.labels) === toKey(labels)))]
      }
    }
    return left
  }

  #compare (): Evaluate {
    const left = this.#sum()
    const operator = ['>', '<', '=='].find((one) => this.#take(one))
    if (operator === undefined) return left
    const right = this.#sum()
    const holds = (one: number, other: number) => operator === '>' ? one > other : operator === '<' ? one < other : one === other
    return (time) => combine(left(time), right(time), (one, other) => holds(one, other) ? one : undefined)
  }

  #sum (): Evaluate {
    let left = this.#product()
    while (this.#take('+')) left = calculate(left, this.#product(), (one, other) => one + other)
    return left
  }

  #product (): Evaluate {
    let left = this.#atom()
    while (this.#take('*')) left = calculate(left, this.#atom(), (one, other) => one * other)
    return left
  }

  #atom (): Evaluate {
    const token = this.#tokens.shift()!
    if (/^\d/.test(token)) return () => Number(token)
    if (token === '(') {
      const inner = this.#or()
      this.#expect(')')
      return inner
    }
    if (token === 'sum' || token === 'max') return this.#aggregate(token)
    if (['rate', 'increase', 'predict_linear', 'vector'].includes(token)) return this.#call(token)
    const range = this.#select(token)
    return (time) => range(time - LOOKBACK, time).filter(({ points }) => points.length > 0).map(({ labels, points }) => ({ labels, value: points.at(-1)!.value }))
  }

  #aggregate (name: string): Evaluate {
    const by: string[] = []
    if (this.#take('by')) {
      this.#expect('(')
      for (let token = this.#tokens.shift(); token !== ')'; token = this.#tokens.shift()) if (token !== ',') by.push(token!)
    }
    this.#expect('(')
    const inner = this.#or()
    this.#expect(')')
    return (time) => [...Map.groupBy(inner(time) as Element[], ({ labels }) => toKey(only(labels, by))).values()].map((group) => {
      const values = group.map(({ value }) => value)
      return { labels: only(group[0]!.labels, by), value: name === 'max' ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0) }
    })
  }

  #call (name: string): Evaluate {
    this.#expect('(')
    if (name === 'vector') {
      const inner = this.#sum()
      this.#expect(')')
      return (time) => [{ labels: {}, value: inner(time) as number }]
    }
    const range = this.#select(this.#tokens.shift()!)
    const ahead = this.#take(',') ? this.#sum() : () => 0
    this.#expect(')')
    return (time) => range(Number.NaN, time).filter(({ points }) => points.length > 1).map(({ labels, points }) => {
      if (name === 'predict_linear') return { labels, value: predict(points, time + (ahead(time) as number)) }
      const span = points.at(-1)!.time - points[0]!.time
      return { labels, value: name === 'rate' ? increase(points) / span : increase(points) }
    })
  }

  /** A selector. With a range of its own, it has the points of that before the time. */
  #select (name: string): Range {
    const matchers: ((labels: Record<string, string>) => boolean)[] = []
    if (this.#take('{')) {
      while (!this.#take('}')) {
        const [label, operator, quoted] = [this.#tokens.shift()!, this.#tokens.shift()!, this.#tokens.shift()!]
        const text = quoted.slice(1, -1)
        matchers.push(({ [label]: value = '' }) => operator === '=~' ? new RegExp(`^(?:${text})$`).test(value) : value === text)
        this.#take(',')
      }
    }
    let width: number | undefined
    if (this.#take('[')) {
      width = toSeconds(this.#tokens.shift()!)
      this.#expect(']')
    }
    const offset = this.#take('offset') ? toSeconds(this.#tokens.shift()!) : 0
    return (from, to) => {
      const [start, end] = [(width === undefined ? from : to - width) - offset, to - offset]
      return [...this.#scrapes.series.values()].filter((series) => series.name === name && matchers.every((matches) => matches(series.labels)))
        .map(({ labels, points }) => ({ labels, points: points.filter(({ time }) => time > start && time <= end) }))
    }
  }
}

/** Matches elements with the same labels. A number matches each. */
function combine (left: Value, right: Value, join: (one: number, other: number) => number | undefined): Value {
  if (typeof left === 'number') throw new Error('PromQL: a number on the left')
  return left.flatMap(({ labels, value }) => {
    const other = typeof right === 'number' ? right : right.find((one) => toKey(one.labels) === toKey(labels))?.value
    const joined = other === undefined ? undefined : join(value, other)
    return joined === undefined ? [] : [{ labels, value: joined }]
  })
}

function calculate (left: Evaluate, right: Evaluate, join: (one: number, other: number) => number): Evaluate {
  return (time) => {
    const [one, other] = [left(time), right(time)]
    if (typeof one === 'number') return typeof other === 'number' ? join(one, other) : combine(other, one, (value, number) => join(number, value))
    return combine(one, other, join)
  }
}

/** An alert rule, and since when its expression holds. */
export class AlertRule {
  readonly #evaluate: Evaluate
  readonly #scrapes: Scrapes
  readonly #wait: number
  #since: number | undefined

  constructor ({ expr, wait }: { expr: string, wait: string | undefined }, scrapes: Scrapes) {
    this.#evaluate = new Parser(expr, scrapes).parse()
    this.#scrapes = scrapes
    this.#wait = wait === undefined ? 0 : toSeconds(wait)
  }

  /** Evaluates it after a scrape. @returns whether it fires */
  look (): boolean {
    const { time } = this.#scrapes
    if ((this.#evaluate(time) as Element[]).length === 0) this.#since = undefined
    else this.#since ??= time
    return this.#since !== undefined && time - this.#since >= this.#wait
  }
}

/** Reads the rules of deploy/alerts.yaml. */
export function readAlerts (text: string): Map<string, { expr: string, wait: string | undefined }> {
  return new Map(text.split(/^ +- alert: /m).slice(1).map((rule) => {
    const [, name = ''] = /^(\w+)/.exec(rule)!
    const [, folded, plain] = / expr: (?:>-\n((?: {10,}.*\n)+)|(.*))/.exec(rule)!
    return [name, { expr: (folded ?? plain)!.replace(/\s+/g, ' ').trim(), wait: / for: (\w+)/.exec(rule)?.[1] }]
  }))
}
