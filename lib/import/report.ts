import type { ImportReport, ImportVerdict } from '../../schemas/import.ts'
import type { ReadPassword } from './read-password.ts'

/** The most names of fields that are counted. A reader of another system's files may name many. */
const MOST_NAMES = 100

/** Parts of a field's name that differ from line to line: `totp[1].secret` counts as `totp.secret`. */
const toGeneral = (field: string): string => field.replaceAll(/\[\d+\]/g, '')

function count (counts: { [name: string]: number }, name: string): void {
  const known = Object.hasOwn(counts, name) ? counts[name]! : 0
  if (known === 0 && Object.keys(counts).length >= MOST_NAMES) return
  // A name such as `__proto__` is a field too.
  Object.defineProperty(counts, name, { value: known + 1, configurable: true, enumerable: true, writable: true })
}

/** Counts what becomes of the lines of a run. */
export function createReport (run: string, source: string) {
  const report: ImportReport = {
    run, source, created: 0, updated: 0, same: 0, refused: 0, refusals: {}, dropped: {}, schemes: {}, sign_in_ms: 0
  }
  return {
    report,

    addVerdict ({ result, field, dropped = [] }: ImportVerdict): void {
      report[result]++
      if (result === 'refused') count(report.refusals, toGeneral(field ?? 'line'))
      for (const name of dropped) count(report.dropped, toGeneral(name))
    },

    addPassword ({ scheme, work }: Pick<ReadPassword, 'scheme' | 'work'>): void {
      count(report.schemes, scheme)
      report.sign_in_ms += work
    }
  }
}

export type Report = ReturnType<typeof createReport>
