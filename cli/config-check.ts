import type { ServiceOptions } from '../lib/identity.ts'
import type { UserRecord } from '../lib/records.ts'
import { hideCredentials } from '../lib/store/index.ts'
import { readAside } from '../lib/store/read-aside.ts'
import { type HeldCount, countHeld } from '../lib/upstreams/count-held.ts'
import { toLogoutUri } from '../lib/upstreams/kinds.ts'
import { toggle } from './args.ts'
import { type Planned, checkDatabase, migrateDatabase } from './check-database.ts'
import type { Commands } from './command.ts'
import { checkExposure } from './process/exposure.ts'

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

/** What the first start changes, as a sentence. */
function describeMigration ({ from, to, reads, shuts_out_earlier: isShut, writes_stop_for: seconds }: Planned): string {
  return [
    ...(from < to ? [`layout ${from} becomes ${to}`] : []),
    ...(reads.length > 0 ? [`reads every record of ${reads.join(' and ')}`] : []),
    ...(isShut ? ['processes of earlier releases can no longer write'] : []),
    ...(from === to && reads.length === 0 ? ['adds tables or indexes'] : []),
    ...(seconds > 0 ? [`nobody can write for ${seconds} s`] : [])
  ].join('; ')
}

export const configCommands: Commands = {
  'config check': {
    summary: 'Check the configuration, the database and the secret key, and show the settings that the service would use. Changes nothing ' +
      'and stops no process: of a database of an earlier release it says what the first start will change.',
    flags: { migrate: toggle('Also migrate the database, as the first start does. Stop the processes of the earlier release first.') },
    async runConfigured ({ args, stderr, json }, config) {
      checkExposure(config)
      const { checkStart } = await import('./process/check-start.ts')
      const warn = (message: string) => { stderr.write(`fastify-identity: warning: ${message}\n`) }
      checkStart(config).forEach(warn)
      const { host, port, workers, oidc, logLevel, services: options } = config
      const { factors = 'optional' } = options
      if (args.has('migrate')) await migrateDatabase(options)
      const held = await countPeople(options)
      if (held !== undefined) for (const line of describeHeld(held)) warn(line)
      const { exists, box, migration } = await checkDatabase(options, warn)
      const missing = [...(exists ? [] : ['database']), ...(box === undefined ? ['secret key'] : [])]
      const uris = listLogoutUris(options.upstreams, oidc === false ? undefined : oidc.issuer)
      return {
        database: hideCredentials(options.database),
        ...(box !== undefined && { key_id: box.keyId }),
        ...(box !== undefined && box.keyIds.length > 1 && { further_key_ids: box.keyIds.slice(1) }),
        ...(migration !== undefined && { migrated_by_first_start: json ? migration : describeMigration(migration) }),
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
