/** Names that no claim of the operator's own may have, from the documents that define them. Written out: nothing is taken from the code under test. */
export const ALL_CLAIMS = [
  // RFC 7519.
  'iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti',
  // OpenID Connect Core.
  'auth_time', 'nonce', 'acr', 'amr', 'azp', 'at_hash', 'c_hash', 'sub_jwk', '_claim_names', '_claim_sources', 'name', 'given_name', 'family_name', 'middle_name', 'nickname',
  'preferred_username', 'profile', 'picture', 'website', 'email', 'email_verified', 'gender', 'birthdate', 'zoneinfo', 'locale', 'phone_number', 'phone_number_verified', 'address',
  'updated_at',
  // FAPI and logout.
  's_hash', 'sid', 'events',
  // RFC 7662, 8693, 9068, 9396, 7800 and 9449.
  'active', 'scope', 'client_id', 'username', 'token_type', 'act', 'may_act', 'roles', 'groups', 'entitlements', 'authorization_details', 'cnf', 'htm', 'htu', 'ath', 'jkt',
  // What gateways and libraries take for scope and client_id.
  'scp', 'cid',
  // Of this service.
  'user_id', 'account', 'scopes', 'subject', 'roles_withheld', 'token_id', 'token_name',
  // Of every object.
  '__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty'
]
