import { readFileSync } from 'node:fs'
import Fastify from 'fastify'
import t from 'tap'
import identity, { ACCESS, ERRORS } from '../index.ts'
import { EnvironmentSchema } from '../schemas/config.ts'
import { OptionsSchema } from '../schemas/options.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

/** The rows of the table whose heading begins with these cells, as cells without their code marks. */
function readTable (...heading: string[]): string[][] {
  const lines = readme.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${heading.join(' | ')} |`))
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'))
  return lines.slice(start + 2, end).map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim().replaceAll('`', '')))
}

t.test('the options table is the options schema', async (t) => {
  const expected = Object.entries(OptionsSchema.properties).map(([name, schema]) => {
    const fallback = schema.default === undefined || schema.default === ''
      ? ''
      : typeof schema.default === 'object' ? JSON.stringify(schema.default) : String(schema.default)
    return [name, fallback]
  })
  t.same(readTable('option', 'default').map(([name, fallback]) => [name, fallback]), expected)
})

t.test('the environment table is the environment schema', async (t) => {
  const write = (value: unknown) => (typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value ?? ''))
  const expected = Object.entries<{ default?: unknown, description?: string }>(EnvironmentSchema.properties)
    .map(([name, schema]) => [name, write(schema.default), schema.description?.replaceAll('`', '')])
  t.same(readTable('variable', 'default'), expected)
})

t.test('the errors table is the table of error kinds', async (t) => {
  t.same(readTable('code', 'status', 'when'), Object.entries(ERRORS).map(([code, { status, when }]) => [code, String(status), when]))
})

t.test('the operations table is the access table', async (t) => {
  const rows = readTable('operation', 'route')
  t.same(rows.map(([operation]) => operation).sort(), Object.keys(ACCESS).sort())
  for (const [operation = '', , who = ''] of rows) {
    const { any = false, owner = false, roles = [] } = ACCESS[operation] ?? {}
    t.equal(who.startsWith('any caller'), any, `${operation}: any caller`)
    if (!any) {
      t.same(who.split(', ').filter((role) => !role.includes(' ')), roles, `${operation}: roles`)
      t.equal(who.includes('the user themselves'), owner, `${operation}: the owner`)
    }
  }
})

t.test('the operations table names the routes that there are', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(identity, { database: 'sqlite::memory:' })
  const { paths } = (await app.inject('/openapi.json')).json()
  const served = Object.entries<Record<string, { operationId: string }>>(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId }]) => [operationId, `${method.toUpperCase()} ${path}`]))
    .filter(([operationId = '']) => Object.hasOwn(ACCESS, operationId))
  t.same(readTable('operation', 'route').map(([operation, route = '']) => [operation, route.replace(' ', ' /api/v1')]).sort(), served.sort())
})
