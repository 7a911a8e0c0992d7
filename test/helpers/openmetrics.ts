/** A sample of an exposition. */
export interface Sample {
  /** With its suffix, such as `_total`. */
  name: string
  labels: Record<string, string>
  value: number
}

export interface Family {
  type: string
  help: string
  samples: Sample[]
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"'
const NUMBER = '[+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:e[+-]?\\d+)?|[+-]Inf|NaN'
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)?\\})? (${NUMBER})$`, 'i')
const ONE_LABEL = new RegExp(`(${LABEL})`, 'g')

/** The suffixes of the samples of each type. */
const SUFFIXES: Record<string, string[]> = {
  counter: ['_total', '_created'], gauge: [''], histogram: ['_bucket', '_sum', '_count', '_created'], summary: ['', '_sum', '_count', '_created'], info: ['_info'], unknown: ['']
}

function toNumber (text: string): number {
  return /Inf$/i.test(text) ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text)
}

function checkHistogram (name: string, samples: Sample[]): void {
  const series = new Map<string, Sample[]>()
  for (const sample of samples) {
    const { le: _, ...rest } = sample.labels
    const key = JSON.stringify(Object.entries(rest).sort())
    series.set(key, [...series.get(key) ?? [], sample])
  }
  for (const [key, group] of series) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`).map(({ labels, value }) => ({ le: toNumber(labels.le ?? 'NaN'), value }))
    const count = group.find((sample) => sample.name === `${name}_count`)?.value
    const isOrdered = buckets.every(({ le, value }, index) => index === 0 || (le > buckets[index - 1]!.le && value >= buckets[index - 1]!.value))
    if (!isOrdered || buckets.at(-1)?.le !== Infinity || buckets.at(-1)?.value !== count) throw new Error(`${name} ${key}: its buckets are not those of a histogram`)
  }
}

/**
 * Parses an exposition by OpenMetrics 1.0, without timestamps and exemplars.
 * @throws Error that says where it breaks the format
 */
export function parseOpenMetrics (text: string): Map<string, Family> {
  if (!text.endsWith('\n# EOF\n')) throw new Error('the text does not end with # EOF')
  const families = new Map<string, Family>()
  const seen = new Set<string>()
  let current: [name: string, family: Family] | undefined
  for (const [index, line] of text.slice(0, -'# EOF\n'.length).trimEnd().split('\n').entries()) {
    const fail = (cause: string): never => { throw new Error(`line ${index + 1}, ${line}: ${cause}`) }
    const meta = new RegExp(`^# (HELP|TYPE|UNIT) (${NAME}) (.*)$`).exec(line)
    if (meta !== null) {
      const [, kind = '', name = '', rest = ''] = meta
      if (current?.[0] !== name) {
        if (families.has(name)) fail('the family is in two places')
        families.set(name, { type: 'unknown', help: '', samples: [] })
        current = [name, families.get(name)!]
      }
      if (current[1].samples.length > 0) fail('metadata after samples')
      if (kind === 'TYPE' && !Object.hasOwn(SUFFIXES, rest)) fail('no such type')
      if (kind === 'TYPE') current[1].type = rest
      if (kind === 'HELP') current[1].help = rest
      continue
    }
    const match = SAMPLE.exec(line)
    if (match === null) return fail('neither metadata nor a sample')
    const [, name = '', labelText = '', value = ''] = match
    if (current === undefined || SUFFIXES[current[1].type]?.some((suffix) => name === current![0] + suffix) !== true) return fail('a sample outside its family')
    const pairs = [...labelText.matchAll(ONE_LABEL)].map(([pair]): [string, string] => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 2, -1)])
    const labels = Object.fromEntries(pairs)
    if (Object.keys(labels).length !== pairs.length) fail('a label twice')
    const key = `${name} ${JSON.stringify(Object.entries(labels).sort())}`
    if (seen.has(key)) fail('the sample is there twice')
    seen.add(key)
    const sample = { name, labels, value: toNumber(value) }
    if (current[1].type === 'counter' && !(sample.value >= 0)) fail('a negative counter')
    current[1].samples.push(sample)
  }
  for (const [name, { type, help, samples }] of families) {
    if (help === '') throw new Error(`${name} has no help`)
    if (type !== 'counter' && name.endsWith('_total')) throw new Error(`${name} is not a counter`)
    if (type === 'histogram') checkHistogram(name, samples)
  }
  return families
}
