import { readConfig } from '../config.ts'
import { LOGIN_CLIENT_ID } from '../lib/bootstrap.ts'
import { repeated, UsageError, value } from './args.ts'
import type { Commands } from './command.ts'
import type { DeviceCode } from './device-login.ts'
import { findServiceUrl } from './service-url.ts'

/** Scopes of a token for everyday administration. */
const LOGIN_SCOPES = ['account:write', 'clients:write', 'users:write']

/** The service that these variables configure. The others, such as the secret key, need not be set where a person signs in. */
function locateService ({ HOST, PORT, IDENTITY_ISSUER }: NodeJS.ProcessEnv): string {
  const config = readConfig({ HOST, PORT, IDENTITY_ISSUER })
  if (IDENTITY_ISSUER === undefined && config.port === 0) throw new UsageError('--issuer: is required, as PORT is 0')
  return findServiceUrl(config)
}

function describeCode ({ verification_uri: uri, verification_uri_complete: complete, user_code: code }: DeviceCode): string {
  return `Go to ${uri} and enter ${code}\n${complete === undefined ? '' : `or open ${complete}\n`}`
}

export const loginCommands: Commands = {
  login: {
    summary: 'Sign in at a running service, and print the tokens. The browser may be on any device.',
    example: 'login --issuer https://id.example.com',
    flags: {
      issuer: value('URL', 'URL of the service. By default IDENTITY_ISSUER, or the address of HOST and PORT.'),
      client: value('ID', `A public client with the device grant; ${LOGIN_CLIENT_ID}, which bootstrap creates, by default.`),
      scope: repeated('SCOPE', 'A scope', `${LOGIN_SCOPES.join(', ')} by default.`)
    },
    async runAlone ({ args, stderr, signal }, env) {
      const scopes = args.all('scope')
      const issuer = args.optional('issuer') ?? locateService(env)
      if (!/^https?:\/\//.test(issuer) || !URL.canParse(issuer)) throw new UsageError('--issuer: must be an http or https URL')
      const { loginByDevice } = await import('./device-login.ts')
      const { access_token, expires_in, refresh_token, scope } = await loginByDevice({
        issuer,
        client_id: args.optional('client') ?? LOGIN_CLIENT_ID,
        scope: (scopes.length > 0 ? scopes : LOGIN_SCOPES).join(' '),
        signal,
        // On stderr, since a program may read stdout.
        showCode: (code) => stderr.write(describeCode(code))
      })
      return { access_token, expires_in, refresh_token, scope }
    }
  }
}
