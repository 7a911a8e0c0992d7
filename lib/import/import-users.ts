import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ImportItem, ImportOptions, ImportReport, ImportVerdict } from '../../schemas/import.ts'
import { defined } from '../defined.ts'
import { IdentityError, goneError } from '../errors.ts'
import { generateId } from '../ids.ts'
import { checkUnrestricted } from '../restricted.ts'
import type { Actor } from '../roles.ts'
import type { CredentialRecord } from '../way.ts'
import { type Brought, createBring } from './bring.ts'
import { type CheckedLine, checkLine } from './check-line.ts'
import { createEarlierLines } from './earlier-lines.ts'
import type { ImportServices } from './parts.ts'
import { type CheckedKeptLine, checkKeptLine } from './kept-line.ts'
import { createBringKept } from './kept-users.ts'
import { createForms } from './forms.ts'
import { listExternalKeys } from './new-user.ts'
import { createPace } from './pace.ts'
import { createPeople } from './people.ts'
import { toRefused } from './refused.ts'
import { createRemembered } from './remembered.ts'
import { createReport } from './report.ts'
import { untilFree } from './until-free.ts'

/** Imports at once in a process. */
const MOST_RUNS = 1

/** A run of an import. */
export interface ImportRun {
  run: string
  /** What the lines came to so far. */
  report: ImportReport
  /** A group of verdicts for each group of lines, in their order. Reading it does the work, and leaving it ends the run. */
  verdicts: AsyncIterable<ImportVerdict[]>
}

type Checked = { item: ImportItem, line: CheckedLine } | { item: ImportItem, verdict: ImportVerdict }

/** What two lines must not share if they are written at once. */
function listOwn ({ id, account, email, external, identities, seeds, kept }: CheckedLine & Partial<Pick<CheckedKeptLine, 'kept'>>): string[] {
  return [
    ...(id === undefined ? [] : [`id ${id}`]),
    `name ${account}`,
    ...(email === undefined ? [] : [`name ${email}`]),
    ...listExternalKeys(external).map((key) => `external ${key}`),
    ...identities.map(({ issuer, subject }) => `identity ${issuer} ${subject}`),
    ...seeds.map((seed) => `seed ${seed}`),
    ...(kept?.ways ?? []).flatMap((way) =>
      [`way ${way.id}`, ...(way.key === undefined ? [] : [`key ${way.key}`]), ...(way.seed === undefined ? [] : [`seed ${way.seed}`])])
  ]
}

/** Divides lines into parts in which no two clash. So the first of two lines with the same account always counts. */
function * divide (checked: readonly Checked[]): Generator<Checked[]> {
  let part: Checked[] = []
  let taken = new Set<string>()
  for (const one of checked) {
    const own = 'line' in one ? listOwn(one.line) : []
    if (own.some((key) => taken.has(key))) {
      yield part
      part = []
      taken = new Set()
    }
    part.push(one)
    for (const key of own) taken.add(key)
  }
  if (part.length > 0) yield part
}

const listDropped = (item: ImportItem): string[] => 'value' in item ? item.dropped ?? [] : []

function toVerdict (item: ImportItem, { result, user_id, dropped = [] }: Brought): ImportVerdict {
  const all = [...new Set([...listDropped(item), ...dropped])]
  return defined({ line: item.line, result, user_id, dropped: all.length > 0 ? all : undefined })
}

function toRefusal ({ line }: ImportItem, error: unknown): ImportVerdict {
  const { field, reason } = toRefused(error)
  return { line, result: 'refused', reason, field }
}

/** Brings people in from another system. */
export function createImport (services: ImportServices) {
  const { store, now, box, seedKey, stored, roles, cost, canAddFactors, decoys, formerImports, recorder, countRest, report: reportError, findUpstream = () => undefined, isAuthority = () => false, timers } = services
  const credentials = store.collection<CredentialRecord>('credentials')
  let running = 0

  /**
   * Brings in the people of lines, group by group: of each group as much at once as one transaction takes.
   * @param groups the lines of a reader, as they come
   * @throws RestrictedError, ErrBusy while another import runs
   */
  return function importUsers (
    groups: AsyncIterable<readonly ImportItem[]>, options: ImportOptions, actor: Pick<Actor, 'confirm' | 'signal' | 'isRestricted'> = {}
  ): ImportRun {
    checkUnrestricted(actor)
    const checkRoom = () => { if (running >= MOST_RUNS) throw new IdentityError('ErrBusy', 'another import is running in this process', { headers: { 'retry-after': '60' } }) }
    checkRoom()
    const { source, run = generateId(now()), dryRun = false } = options
    const { report, addVerdict, addPassword } = createReport(run, source)
    const register = createForms(decoys)
    const toParts = () => ({ source, run, now: now(), box, seedKey, findUpstream, lazy: options.lazy })
    const earlier = dryRun ? createEarlierLines() : undefined
    const people = createPeople(store, earlier)
    const remembered = createRemembered(store)
    const writing = { people, remembered, formerImports, stored, credentials, roles, options, earlier, register, toParts }
    const bring = options.kept === true ? createBringKept(writing) as (line: CheckedLine) => Promise<Brought> : createBring(writing)
    const read = options.kept === true ? checkKeptLine : checkLine

    async function check (item: ImportItem): Promise<Checked> {
      if (!('value' in item)) return { item, verdict: { line: item.line, result: 'refused', reason: item.reason, field: item.field } }
      try {
        return { item, line: await read(item.value, options, { roles, cost, canAddFactors, isAuthority, now: now() }) }
      } catch (error) {
        return { item, verdict: toRefusal(item, error) }
      }
    }

    async function write (checked: Checked): Promise<ImportVerdict> {
      if ('verdict' in checked) return checked.verdict
      const { item, line } = checked
      try {
        const brought = await untilFree(async () => await bring(line), { signal: actor.signal, timers })
        if (brought.isPasswordTaken === true) addPassword(line.password!)
        return toVerdict(item, brought)
      } catch (error) {
        return toRefusal(item, error)
      }
    }

    async function writeBatch (items: readonly ImportItem[]): Promise<ImportVerdict[]> {
      const verdicts: ImportVerdict[] = []
      for (const part of divide(await Promise.all(items.map(check)))) {
        // A failure waits for the other lines: what they write is counted too.
        const settled = await Promise.allSettled(part.map(write))
        const written = settled.flatMap((one) => one.status === 'fulfilled' ? [one.value] : [])
        written.forEach(addVerdict)
        const failure = settled.find((one) => one.status === 'rejected')
        if (failure !== undefined) throw failure.reason
        verdicts.push(...written)
      }
      return verdicts
    }

    async function finish (): Promise<void> {
      const { created, updated, same, refused } = report
      if (!dryRun) await recorder.insert({ type: 'users.imported', id: run, counts: { created, updated, same, refused } })
    }

    async function * writeAll (): AsyncGenerator<ImportVerdict[]> {
      checkRoom()
      running++
      const pace = createPace(countRest)
      try {
        for await (const group of groups) {
          for (let start = 0, most = 0; start < group.length; start += most) {
            if (actor.signal?.aborted === true) throw goneError()
            await actor.confirm?.()
            most = await pace.wait()
            await remembered.refresh()
            yield await writeBatch(group.slice(start, start + most))
            // Other requests have their turn.
            await nextTurn()
          }
        }
      } finally {
        running--
        earlier?.close()
        await finish().catch(reportError('users'))
      }
    }

    return { run, report, verdicts: writeAll() }
  }
}
