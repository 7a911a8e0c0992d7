import type { Setting } from '../../schemas/status.ts'
import { OidcOptionsSchema } from '../../schemas/oidc.ts'
import { OptionsSchema } from '../../schemas/options.ts'
import { defined } from '../defined.ts'
import { findVariable } from '../variables.ts'
import { type Term, showValue } from './show-value.ts'

const OPTIONS: Readonly<Record<string, Term>> = OptionsSchema.properties

/** The options whose parts are shown one by one. */
const DIVIDED: Readonly<Record<string, Readonly<Record<string, Term>>>> = {
  roles: OptionsSchema.properties.roles.properties,
  links: OptionsSchema.properties.links.properties,
  mail: OptionsSchema.properties.mail.properties,
  migrate: OptionsSchema.properties.migrate.properties,
  oidc: OidcOptionsSchema.properties
}

/** Parts of other options that have a variable. */
const PARTS = ['personalTokens.scopes', 'personalTokens.roles', 'personalTokens.resources', 'forwardAuth.header']

const PATHS = [
  ...Object.keys(OPTIONS), ...PARTS, ...Object.entries(DIVIDED).flatMap(([name, parts]) => Object.keys(parts).map((part) => `${name}.${part}`))
]

const NAMES: ReadonlyMap<string, string> = new Map(PATHS.flatMap((path) => {
  const variable = findVariable(path)
  return variable === undefined ? [] : [[variable, path]]
}))

/** The option that a variable sets: IDENTITY_ACCENT is `oidc.accent`. What concerns the process only is named alike: LOG_LEVEL is `logLevel`. */
export const nameOption = (variable: string): string =>
  NAMES.get(variable) ?? variable.replace(/^IDENTITY_/, '').toLowerCase().replace(/_([a-z])/g, (_text, letter: string) => letter.toUpperCase())

type Values = Readonly<Record<string, unknown>>

const isValues = (value: unknown): value is Values => typeof value === 'object' && value !== null

/** Parts that are functions of the host, which have no schema. */
const listFunctions = (value: unknown): string[] => isValues(value) ? Object.keys(value).filter((key) => typeof value[key] === 'function') : []

/**
 * The settings of an app that embeds the service.
 * @param given the options as the app has them
 * @param used the options with their defaults
 */
export function listOptions (given: Values, used: Values): Setting[] {
  const toSetting = (name: string, schema: Term, value: unknown, isGiven: boolean): Setting => defined({
    name, variable: findVariable(name), value: showValue(schema, value), origin: isGiven ? 'option' as const : 'default' as const
  })
  return Object.entries(OPTIONS).flatMap(([name, schema]): Setting[] => {
    const [own, value] = [given[name], used[name]]
    const parts = DIVIDED[name]
    const functions = listFunctions(own)
    if (parts === undefined || (!isValues(value) && functions.length === 0)) return [toSetting(name, schema, value, own !== undefined)]
    const isGiven = (part: string) => isValues(own) && own[part] !== undefined
    return [
      ...Object.entries(parts).map(([part, schema]) => toSetting(`${name}.${part}`, schema, isValues(value) ? value[part] : undefined, isGiven(part))),
      ...functions.map((part): Setting => ({ name: `${name}.${part}`, value: 'set', origin: 'option' }))
    ]
  })
}
