import { readFileSync } from 'node:fs'
import t from 'tap'
import { ERRORS } from '../index.ts'
import { EnvironmentSchema } from '../schemas/config.ts'
import { OptionsSchema } from '../schemas/options.ts'
import { parseTable } from './helpers/table.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

const readTable = (...heading: string[]) => parseTable(readme, ...heading)

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
