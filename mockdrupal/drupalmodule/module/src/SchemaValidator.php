<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use JsonSchema\Validator;

/**
 * Accepts all arguments of parameters that declare a Drupal field type.
 *
 * Such a parameter has {"type": "entity_reference", …} where others have a JSON
 * Schema, and the library takes no type that JSON Schema does not have.
 */
class SchemaValidator extends Validator {

  private const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string', 'any'];

  /**
   * {@inheritdoc}
   */
  public function validate(&$value, $schema = NULL, $checkMode = NULL): int {
    $type = is_array($schema) ? ($schema['type'] ?? NULL) : NULL;
    if (is_string($type) && !in_array($type, self::TYPES, TRUE)) {
      $this->reset();
      return self::ERROR_NONE;
    }
    return (int) parent::validate($value, $schema, $checkMode);
  }

}
