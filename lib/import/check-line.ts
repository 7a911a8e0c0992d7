import { Ajv, type ValidateFunction } from 'ajv'
import { Type } from '@sinclair/typebox'
import { type ImportLine, ImportLineSchema, findPasswordSchema } from '../../schemas/import.ts'
import { checkAccount, checkAttributes, checkMap, checkRoles, checkText, checkTimestamp } from '../checks.ts'
import { defined } from '../defined.ts'
import { explainInvalid } from '../invalid.ts'
import { DOCUMENT_PREFIX } from '../client-documents/ids.ts'
import { checkName } from '../names.ts'
import { OWN_SCHEMAS } from '../options.ts'
import { type RoleNames, type Roles, holdsRole } from '../roles.ts'
import type { Json } from '../store/port.ts'
import { ROUTE_NAMES } from './keys.ts'
import { type ReadPassword, readPassword } from './read-password.ts'
import { readSeeds } from './read-seeds.ts'
import { Refused, naming } from './refused.ts'

/** What the operator allows. */
export interface LineOptions {
  trustEmails?: boolean | undefined
  allowRoles?: boolean | undefined
  allowWeak?: boolean | undefined
  withoutFactors?: boolean | undefined
}

export interface LineParts {
  roles: RoleNames
  /** The configured cost of our own hashes. */
  cost: number
  /** Whether people can have second factors. */
  canAddFactors: boolean
  now: number
}

/** A line whose fields are checked, each in its stored form. */
export interface CheckedLine {
  id?: string
  external: { [source: string]: string }
  account: string
  /** A trusted address: the account itself, or another one. */
  email?: string
  name?: string
  roles: Roles
  info?: { [key: string]: Json }
  attributes?: { [key: string]: Json }
  disabled: boolean
  expired_at?: string
  created_at?: string
  password?: ReadPassword
  /** Seeds of authenticator apps, in base32. */
  seeds: string[]
  identities: { issuer: string, subject: string }[]
  /** Fields that were not taken. */
  dropped: string[]
}

const CONTROL = /\p{Cc}/u

// A password has one of many forms: that of its `scheme` gives a better message than all of them.
const LineSchema = Type.Object({ ...ImportLineSchema.properties, password: Type.Optional(Type.Object({})) }, { additionalProperties: false })

const ajv = new Ajv({ ...OWN_SCHEMAS, allErrors: false })
const validators = new Map<object, ValidateFunction>()

/** @throws ErrParam */
export function validate (schema: object, value: unknown, part: string): void {
  const check = validators.get(schema) ?? ajv.compile(schema)
  validators.set(schema, check)
  if (check(value)) return
  throw explainInvalid((check.errors ?? []).map((error) => part === 'line' ? error : { ...error, instancePath: `/${part}${error.instancePath}` }), part)
}

/** A text that becomes a part of a key: no control characters, NUL among them, and no lone surrogates. */
function checkKeyText (field: string, text: string): string {
  checkText(field, text)
  if (CONTROL.test(text)) throw new Refused(field, 'must not contain control characters')
  return text
}

function checkId (id: string): string {
  if (ROUTE_NAMES.includes(id)) throw new Refused('id', 'is the name of an operation')
  if (id.startsWith(DOCUMENT_PREFIX)) throw new Refused('id', `begins with ${DOCUMENT_PREFIX}, as ids of clients with a document do`)
  return id
}

function checkCreated (text: string, now: number): string {
  const created = checkTimestamp('created_at', text)
  if (Date.parse(created) > now) throw new Refused('created_at', 'is in the future')
  return created
}

/** The trusted address of a line. Any other that is not the account is dropped, and so is a claim that is not believed. */
function readEmail (line: ImportLine, account: string, trust: boolean): { email?: string, dropped: string[] } {
  const email = line.email === undefined ? undefined : checkAccount(line.email)
  if (email !== undefined && !email.includes('@')) throw new Refused('email', 'must be an email address')
  const address = email ?? (account.includes('@') ? account : undefined)
  if (line.email_verified === true && trust && address !== undefined) return { email: address, dropped: [] }
  return {
    dropped: [
      ...(email !== undefined && email !== account ? ['email'] : []),
      ...(line.email_verified === true ? ['email_verified'] : [])
    ]
  }
}

function readRoles (roles: ImportLine['roles'], names: RoleNames, allow: boolean): Roles {
  const checked = checkRoles(roles ?? {})
  const special = Object.values(names).find((role) => holdsRole(checked, role))
  if (special !== undefined && !allow) throw new Refused('roles', `needs ${naming('allow-roles')}, because ${special} is among them`)
  return checked
}

/**
 * Checks the value of a line, whatever the store has.
 * @throws Refused, and ErrParam
 */
export async function checkLine (value: unknown, options: LineOptions, { roles: names, cost, canAddFactors, now }: LineParts): Promise<CheckedLine> {
  validate(LineSchema, value, 'line')
  const line = value as ImportLine
  const { password, external = {}, identities = [] } = line
  if (password !== undefined) {
    const schema = findPasswordSchema((password as { scheme?: unknown }).scheme)
    if (schema === null) throw new Refused('password.scheme', 'is unknown')
    validate(schema, password, 'password')
  }
  const account = checkAccount(line.account)
  const { email, dropped } = readEmail(line, account, options.trustEmails === true)
  const { seeds, isDropped } = readSeeds(line.totp ?? [], { withoutFactors: options.withoutFactors === true, canAddFactors })
  const { info, attributes } = line as Pick<CheckedLine, 'info' | 'attributes'>
  return defined({
    id: line.id === undefined ? undefined : checkId(line.id),
    external: Object.fromEntries(Object.entries(external).map(([source, id]) => [source, checkKeyText(`external.${source}`, id)])),
    account,
    email,
    name: line.name === undefined ? undefined : checkName('name', line.name),
    roles: readRoles(line.roles, names, options.allowRoles === true),
    info: info === undefined ? undefined : checkMap('info', info),
    attributes: attributes === undefined ? undefined : checkAttributes(attributes),
    disabled: line.disabled === true,
    expired_at: line.expired_at === undefined ? undefined : checkTimestamp('expired_at', line.expired_at),
    created_at: line.created_at === undefined ? undefined : checkCreated(line.created_at, now),
    password: password === undefined ? undefined : await readPassword(password, { cost, allowWeak: options.allowWeak }),
    seeds,
    identities: identities.map(({ issuer, subject }, index) => ({
      issuer: checkKeyText(`identities[${index}].issuer`, issuer), subject: checkKeyText(`identities[${index}].subject`, subject)
    })),
    dropped: [...dropped, ...(isDropped ? ['totp'] : [])]
  })
}
