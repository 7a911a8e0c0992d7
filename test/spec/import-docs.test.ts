import fastify from 'fastify'
import t from 'tap'
import identity from '../../index.ts'
import { ROUTE_NAMES } from '../../lib/import/keys.ts'
import { ImportLineSchema, ImportVerdictSchema } from '../../schemas/import.ts'
import { readDoc } from '../helpers/docs.ts'

/** The names in the first column of the table below a text. */
function listNames (page: string, heading: string): string[] {
  const [table = ''] = /\n\| --- \| --- \|\n(?:\|.*\n)+/.exec(page.slice(page.indexOf(heading))) ?? []
  return table.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name!))
}

t.test('the page has every field of a line and of a verdict', async (t) => {
  const page = readDoc('docs/import.md')
  t.strictSame(listNames(page, '## A line').sort(), Object.keys(ImportLineSchema.properties).sort())
  t.strictSame(listNames(page, '## A verdict').sort(), Object.keys(ImportVerdictSchema.properties).sort())
})

t.test('no user gets an id that is a name of a route below /user', async (t) => {
  const app = fastify()
  t.teardown(async () => await app.close())
  const names = new Set<string>()
  app.addHook('onRoute', ({ url }) => {
    const name = /\/user\/([^:/]+)/.exec(url)?.[1]
    if (name !== undefined) names.add(name)
  })
  await app.register(identity, { database: 'sqlite::memory:', openapi: false })
  await app.ready()
  t.ok(names.has('list'))
  t.strictSame([...names].filter((name) => !ROUTE_NAMES.includes(name)), [])
})
