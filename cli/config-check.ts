import { existsSync } from 'node:fs'
import { createSecretBox } from '../lib/crypto/secrets.ts'
import { findKeyFile, resolveSecretKeys } from '../lib/crypto/secret-key.ts'
import { type ServiceOptions, openServices } from '../lib/identity.ts'
import { hideCredentials } from '../lib/store/index.ts'
import { NoDatabaseError } from '../lib/store/port.ts'
import { readAside, shutsOutEarlier } from '../lib/store/read-aside.ts'
import type { UserRecord } from '../lib/records.ts'
import { type HeldCount, countHeld } from '../lib/upstreams/count-held.ts'
import { toLogoutUri } from '../lib/upstreams/kinds.ts'
import type { Commands } from './command.ts'
import { checkExposure } from './process/exposure.ts'

/**
 * Opens the database as a start does, and makes nothing.
 * @param warn receives what people have from settings that are gone
 * @returns whether there is one; without one, a start with these options makes it
 * @throws as openServices, and where there is no database and a start makes none
 */
async function openExisting (options: ServiceOptions, warn: (message: string) => void): Promise<boolean> {
  try {
    const services = await openServices({ ...options, createDatabase: false, dryRun: true })
    try {
      const { countLeft } = await import('../lib/upstreams/role-changes.ts')
      for (const { upstream, role, count } of await countLeft(services.store, options.upstreams ?? [])) {
        warn(`the role ${role} is in no map of the upstream ${upstream} any more, and ${count} ${count === 1 ? 'person keeps' : 'people keep'} it`)
      }
    } finally {
      await services.close()
    }
    return true
  } catch (error) {
    const isMissing = [error, (error as Error).cause].some((one) => one instanceof NoDatabaseError)
    if (isMissing && (options.createDatabase ?? !options.production)) return false
    throw error
  }
}

/** The people whom upstreams with `only` claim, without a change of the database; undefined where there is no such upstream. */
async function countPeople ({ database, upstreams = [], roles }: ServiceOptions): Promise<HeldCount | undefined> {
  if (database === 'sqlite::memory:' || !upstreams.some(({ only }) => only === true)) return undefined
  return await countHeld(readAside<UserRecord>(database, 'users'), upstreams, roles)
}

/** Each count that is not 0, as a sentence. */
function * describeHeld ({ unproved, unreachable, undone }: HeldCount): Generator<string> {
  if (unproved > 0) yield `only: people without a proved address in its domains, who sign in with the provider alone: ${unproved}`
  if (unreachable > 0) yield `only: people with another address, whose account no identity joins until you set their address: ${unreachable}`
  if (undone > 0) yield `only: people who have disconnected an identity that they had not linked, so that none joins by itself (see user identities replace): ${undone}`
}

/** The URLs to register with other providers, for their logout tokens. */
function listLogoutUris (upstreams: ServiceOptions['upstreams'] = [], issuer?: string): string[] {
  return upstreams.map((upstream) => toLogoutUri(upstream, issuer)).filter((uri) => uri !== undefined)
}

export const configCommands: Commands = {
  'config check': {
    summary: 'Check the configuration, the database and the secret key, and show the settings that the service would use. Creates ' +
      'and migrates nothing: of a database of an earlier release, it only reads whom upstreams hold.',
    flags: {},
    async runConfigured ({ stderr, json }, config) {
      checkExposure(config)
      const { checkStart } = await import('./process/check-start.ts')
      const warn = (message: string) => { stderr.write(`fastify-identity: warning: ${message}\n`) }
      checkStart(config).forEach(warn)
      const { host, port, workers, oidc, logLevel, services: options } = config
      const { factors = 'optional' } = options
      const held = await countPeople(options)
      if (held !== undefined) for (const line of describeHeld(held)) warn(line)
      const isEarlier = options.database !== 'sqlite::memory:' && await shutsOutEarlier(options.database)
      const exists = isEarlier || options.database === 'sqlite::memory:' || await openExisting(options, warn)
      const keyFile = findKeyFile(options)
      const isNew = keyFile !== null && !existsSync(keyFile)
      const box = isNew ? undefined : createSecretBox(...await resolveSecretKeys(options, async () => true))
      const missing = [...(exists ? [] : ['database']), ...(isNew ? ['secret key'] : [])]
      const uris = listLogoutUris(options.upstreams, oidc === false ? undefined : oidc.issuer)
      return {
        database: hideCredentials(options.database),
        ...(box !== undefined && { key_id: box.keyId }),
        ...(box !== undefined && box.keyIds.length > 1 && { further_key_ids: box.keyIds.slice(1) }),
        ...(isEarlier && { migrated_by_first_start: true }),
        ...(held !== undefined && { only: json ? held : `${held.unproved} unproved, ${held.unreachable} unreachable, ${held.undone} undone` }),
        ...(missing.length > 0 && { made_by_first_start: json ? missing : missing.join(', ') }),
        issuer: oidc === false ? 'none' : oidc.issuer ?? 'the address it listens on',
        address: `${host}:${port}`,
        ...(uris.length > 0 && { backchannel_logout_uris: json ? uris : uris.join(', ') }),
        workers,
        log_level: logLevel,
        production: options.production,
        factors: typeof factors === 'string' ? factors : json ? factors : `optional, required for ${factors.roles.join(', ')}`,
        manager_roles: options.managerRoles ?? 'every role but the admin and service roles: set IDENTITY_MANAGER_ROLES to narrow this'
      }
    }
  }
}
