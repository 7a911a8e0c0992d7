import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { READERS } from '../../lib/import/formats/index.ts'
import type { Services } from '../../lib/services.ts'
import type { ImportOptions, ImportReport, ImportVerdict } from '../../schemas/import.ts'
import { forEachStore } from '../helpers/build.ts'
import { type FilePerson, WRITERS, files } from '../helpers/import-files.ts'
import { checkProperty } from '../helpers/property.ts'

const OPERATOR = { user_id: '', isAdmin: true }

/** What each run of the property does alone: its people have ids, names, addresses, identities and seeds of their own. */
function setApart (people: readonly FilePerson[], run: number): FilePerson[] {
  const letters = [...String(run).padStart(4, '0')].map((digit) => 'ABCDEFGHIJ'[Number(digit)]).join('')
  return people.map(({ id, username, email, seed, subject, ...rest }) => ({
    ...rest,
    id: `${run}000${id}`,
    username: `${username}${run}`,
    email: email === undefined ? undefined : `${run}${email}`,
    seed: seed === undefined || seed === 'short' ? seed : seed.slice(0, -4) + letters,
    subject: subject === undefined ? undefined : `${subject}${run}`
  }))
}

const switches = fc.record({
  onConflict: fc.constantFrom('skip' as const, 'update' as const, 'update' as const, 'fail' as const),
  trustEmails: fc.boolean(),
  allowRoles: fc.boolean(),
  allowWeak: fc.boolean(),
  withoutFactors: fc.boolean(),
  lazy: fc.boolean(),
  again: fc.boolean()
})

interface Ran {
  verdicts: ImportVerdict[]
  report: Omit<ImportReport, 'run'>
}

async function run ({ imports }: Services, format: string, text: string, options: Omit<ImportOptions, 'source'>): Promise<Ran> {
  async function * read () {
    // Of a large piece a reader makes many lines, which are written at once.
    const size = text.length % 2 === 0 ? 997 : 64 * 1024
    for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size))
  }
  const source = 'old'
  const groups = READERS[format]!(read(), { source, withoutFactors: options.withoutFactors === true, issuers: { google: 'https://accounts.google.com' } })
  const { verdicts, report: { run: _run, ...report } } = await imports.importUsers(groups, { ...options, source, kept: format === 'fastify-identity' })
  return { verdicts: (await Array.fromAsync(verdicts)).flat(), report }
}

async function dump ({ store }: Services): Promise<object[]> {
  const names = ['users', 'credentials', 'former_imports', 'keys', 'meta']
  return (await Promise.all(names.map(async (name) => (await Array.fromAsync(store.collection(name).stream())).flat()))).flat()
}

/** A run gives ids of its own to people whose lines have none. */
const withoutNew = ({ verdicts, report }: Ran, ids: readonly boolean[]): Ran =>
  ({ report, verdicts: verdicts.map(({ user_id, ...verdict }, index) => ({ ...verdict, ...(ids[index] === true && { user_id: user_id! }) })) })

await forEachStore(t, async (t, build, store) => {
  const { app: { identity: services } } = await build(t)
  let count = 0
  for (const [format, write] of Object.entries(WRITERS)) {
    await t.test(`a dry run of a file of ${format} says line by line what the run does`, async (t) => {
      await checkProperty(t, store === 'SQLite' ? 25 : 5, fc.asyncProperty(files, files, switches, async (before, after, { onConflict, ...options }) => {
        count++
        const chosen = { ...options, onConflict: format === 'fastify-identity' && onConflict === 'update' ? 'skip' as const : onConflict }
        const [here, coming] = [before, after].map((people) => write(setApart(people, count))) as [string, string]
        const { verdicts: brought } = await run(services, format, here, { ...chosen, again: false })
        const created = brought.flatMap(({ result, user_id }) => result === 'created' ? [user_id!] : [])
        // Some of them were deleted here.
        for (const id of created.filter((_id, index) => index % 3 === 2)) await services.users.remove(id, OPERATOR)
        await services.events.flush()
        // The forms of the run are new ones.
        await services.store.collection('meta').delete('password_schemes')
        const stored = await dump(services)
        const dry = await run(services, format, coming, { ...chosen, dryRun: true })
        deepStrictEqual(await dump(services), stored, 'it writes nothing')
        const real = await run(services, format, coming, chosen)
        deepStrictEqual(dry, withoutNew(real, dry.verdicts.map(({ user_id }) => user_id !== undefined)))
      }))
    })
  }
})
