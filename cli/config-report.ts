import type { Capability } from '../lib/status/capabilities.ts'
import type { NextStep } from '../schemas/status.ts'
import { toCell } from './output.ts'
import type { Setting } from './settings.ts'

/** Columns of a terminal. */
const WIDTH = 80

/** What `config check` shows. */
export interface Report {
  settings: readonly Setting[]
  capabilities: readonly Capability[]
  next: readonly NextStep[]
  /** Of the database and the keys, by field. */
  found: Readonly<Record<string, string>>
}

/** Breaks a text between words. A word that is longer than a line stays whole, so that it can be copied. */
export function fold (text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of toCell(text).split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

/** A text beside a label, or below it where a word is too long to stand beside it. */
function toLines (label: string, text: string, width: number): string[] {
  const beside = fold(text, width - label.length)
  const indent = ' '.repeat(label.length)
  if (beside.every((line) => label.length + line.length <= width)) return beside.map((line, index) => `${index === 0 ? label : indent}${line}`)
  return [label.trimEnd(), ...fold(text, width - 6).map((line) => `      ${line}`)]
}

/** A value as its variable has it, or in brackets what it means that there is none. */
function showValue ({ value, absent, file, decided_by: decider }: Setting): string {
  const text = value === undefined ? `(${absent})` : typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value)
  const from = decider === undefined ? file : decider
  return from === undefined || from === text ? text : `${text} (${decider === undefined ? 'in' : 'by'} ${from})`
}

function * writeSettings (settings: readonly Setting[], width: number): Generator<string> {
  const names = Math.max(...settings.map(({ name }) => name.length))
  let group: string | undefined
  for (const setting of settings) {
    if (setting.group !== group) yield * group === undefined ? [setting.group] : ['', setting.group]
    group = setting.group
    yield * toLines(`  ${setting.name.padEnd(names)} ${setting.source.padEnd('variable'.length)} `, showValue(setting), width)
  }
}

const STATES = { on: 'on', off: 'off', broken: 'cannot work' }

function * writeCapabilities (capabilities: readonly Capability[], width: number): Generator<string> {
  yield 'What works'
  for (const { name, state, summary, why, to_do: toDo, providers = [] } of capabilities) {
    const label = `  ${name.padEnd(9)} ${STATES[state].padEnd(STATES.broken.length)} `
    const [text = '', ...more] = [summary, why, toDo].filter((one) => one !== undefined)
    yield * toLines(label, text, width)
    for (const line of more) yield * toLines(' '.repeat(label.length), line, width)
    for (const { id, name, redirect_uri: redirect, backchannel_logout_uri: logout } of providers) {
      yield * toLines('    ', `${id} (${name})`, width)
      yield * toLines('      redirect URI: ', redirect, width)
      if (logout !== undefined) yield * toLines('      back-channel logout URI: ', logout, width)
    }
  }
}

function * writeNext (steps: readonly NextStep[], width: number): Generator<string> {
  yield 'What to set up next'
  for (const { text } of steps) yield * toLines('  - ', text, width)
}

function * writeFound (found: Report['found'], width: number): Generator<string> {
  yield 'Database and keys'
  const names = Math.max(...Object.keys(found).map((name) => name.length))
  for (const [name, text] of Object.entries(found)) yield * toLines(`  ${name.padEnd(names)}  `, text, width)
}

/** @param isTerminal whether lines have at most 80 columns */
export function writeReport ({ settings, capabilities, next, found }: Report, isTerminal: boolean): string {
  const width = isTerminal ? WIDTH : Infinity
  const parts = [
    [...writeSettings(settings, width)],
    ...(capabilities.length === 0 ? [] : [[...writeCapabilities(capabilities, width)]]),
    ...(next.length === 0 ? [] : [[...writeNext(next, width)]]),
    ...(Object.keys(found).length === 0 ? [] : [[...writeFound(found, width)]])
  ]
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`
}
